#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/weights/dtype.h"
#include "core/weights/safetensors.h"

namespace forge::weights {
namespace {

using Json = nlohmann::json;
constexpr size_t alignment = 64;

using Named = std::pair<const std::string, TensorView>;

/// Wider dtypes first, so that every tensor is aligned to its own although no gap is allowed.
std::vector<const Named*> in_file_order(const std::map<std::string, TensorView>& tensors) {
  std::vector<const Named*> order;
  for (const Named& named : tensors) order.push_back(&named);
  std::stable_sort(order.begin(), order.end(), [](const Named* a, const Named* b) {
    return bytes_of(a->second.dtype) > bytes_of(b->second.dtype);
  });
  return order;
}

void check(const std::string& name, const TensorView& tensor) {
  if (name == "__metadata__") throw Error("a tensor cannot be named '__metadata__'");
  if (bytes_of(tensor.dtype, tensor.shape) != tensor.bytes) {
    throw Error("tensor '" + name + "' has " + std::to_string(tensor.bytes) +
                " bytes, which is not what its shape and dtype give");
  }
}

/// The header with its length before it, padded with spaces so that the data is aligned.
std::string header_of(const std::vector<const Named*>& order,
                      const std::map<std::string, std::string>& metadata) {
  // Entry by entry, because a JSON object would sort them by name.
  std::vector<std::string> entries;
  if (!metadata.empty()) entries.push_back("\"__metadata__\":" + Json(metadata).dump());
  size_t offset = 0;
  for (const Named* named : order) {
    const auto& [name, tensor] = *named;
    const Json entry = {{"dtype", name_of(tensor.dtype)},
                        {"shape", tensor.shape},
                        {"data_offsets", {offset, offset + tensor.bytes}}};
    entries.push_back(Json(name).dump() + ":" + entry.dump());
    offset += tensor.bytes;
  }
  std::string text = "{" + join(entries, ",") + "}";
  constexpr size_t length_bytes = 8;
  const size_t unpadded = length_bytes + text.size();
  text.append((alignment - unpadded % alignment) % alignment, ' ');
  std::string length;
  for (size_t i = 0; i < length_bytes; ++i) {
    length += static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  return length + text;
}

void write_all(int fd, const void* bytes, size_t size, const std::filesystem::path& path) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    // The kernel takes at most 2 GiB at once and says how much it took.
    const ssize_t written = ::write(fd, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      throw system_error("write '" + path.string() + "'", written < 0 ? errno : EIO);
    at += written;
    size -= static_cast<size_t>(written);
  }
}

}  // namespace

int64_t write_safetensors(const std::filesystem::path& path,
                          const std::map<std::string, TensorView>& tensors,
                          const std::map<std::string, std::string>& metadata) {
  for (const auto& [name, tensor] : tensors) check(name, tensor);
  const std::vector<const Named*> order = in_file_order(tensors);
  const std::string header = header_of(order, metadata);
  const std::filesystem::path aside = path.string() + ".tmp-" + std::to_string(::getpid());
  const FileDescriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) throw system_error("write '" + aside.string() + "'", errno);
  auto total = static_cast<int64_t>(header.size());
  try {
    write_all(file.get(), header.data(), header.size(), aside);
    for (const Named* named : order) {
      write_all(file.get(), named->second.data, named->second.bytes, aside);
      total += static_cast<int64_t>(named->second.bytes);
    }
    if (::fsync(file.get()) != 0) throw system_error("sync '" + aside.string() + "'", errno);
    if (::rename(aside.c_str(), path.c_str()) != 0) {
      throw system_error("rename '" + aside.string() + "'", errno);
    }
  } catch (...) {
    ::unlink(aside.c_str());
    throw;
  }
  sync_path(path.has_parent_path() ? path.parent_path() : std::filesystem::path("."));
  return total;
}

}  // namespace forge::weights
