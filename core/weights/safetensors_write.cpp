#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/weights/convert.h"
#include "core/weights/dtype.h"
#include "core/weights/safetensors.h"

namespace forge::weights {
namespace {

using Json = nlohmann::json;
constexpr size_t alignment = 64;

constexpr size_t converted_at_once = size_t{1} << 16;  // values
constexpr size_t written_at_once = size_t{16} << 20;   // bytes
constexpr size_t synced_at_once = size_t{256} << 20;   // bytes

/// A tensor on its way into the file.
struct Item {
  const std::string* name;
  const TensorView* tensor;
  Dtype dtype;   ///< in the file
  size_t bytes;  ///< in the file
};

/// Wider dtypes first, so that every tensor is aligned to its own although no gap is allowed.
std::vector<Item> in_file_order(const std::map<std::string, TensorView>& tensors,
                                std::optional<Dtype> floating) {
  std::vector<Item> items;
  for (const auto& [name, tensor] : tensors) {
    const Dtype dtype = floating && is_floating(tensor.dtype) ? *floating : tensor.dtype;
    const size_t bytes = tensor.bytes / bytes_of(tensor.dtype) * bytes_of(dtype);
    items.push_back({&name, &tensor, dtype, bytes});
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return bytes_of(a.dtype) > bytes_of(b.dtype);
  });
  return items;
}

void check(const std::string& name, const TensorView& tensor) {
  if (name == "__metadata__") throw Error("a tensor cannot be named '__metadata__'");
  if (bytes_of(tensor.dtype, tensor.shape) != tensor.bytes) {
    throw Error("tensor '" + name + "' has " + std::to_string(tensor.bytes) +
                " bytes, which is not what its shape and dtype give");
  }
}

/// The header with its length before it, padded with spaces so that the data is aligned.
std::string header_of(const std::vector<Item>& items,
                      const std::map<std::string, std::string>& metadata) {
  // Entry by entry, because a JSON object would sort them by name.
  std::vector<std::string> entries;
  if (!metadata.empty()) entries.push_back("\"__metadata__\":" + json_text(Json(metadata)));
  size_t offset = 0;
  for (const Item& item : items) {
    const Json entry = {{"dtype", name_of(item.dtype)},
                        {"shape", item.tensor->shape},
                        {"data_offsets", {offset, offset + item.bytes}}};
    entries.push_back(json_text(Json(*item.name)) + ":" + json_text(entry));
    offset += item.bytes;
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

/// The file on its way.
class Output {
 public:
  Output(std::filesystem::path path, const OnBytes& on_bytes)
      : path_(std::move(path)),
        on_bytes_(on_bytes),
        file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (!file_) throw system_error("write '" + path_.string() + "'", errno);
  }

  void write(const void* bytes, size_t size) {
    const char* at = static_cast<const char*>(bytes);
    while (size > 0) {
      const ssize_t written = ::write(file_.get(), at, std::min(size, written_at_once));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0)
        throw system_error("write '" + path_.string() + "'", written < 0 ? errno : EIO);
      at += written;
      size -= static_cast<size_t>(written);
      unsynced_ += static_cast<size_t>(written);
      if (unsynced_ >= synced_at_once) sync();
      if (on_bytes_) on_bytes_(written);
    }
  }

  void sync() {
    if (::fsync(file_.get()) != 0) throw system_error("sync '" + path_.string() + "'", errno);
    unsynced_ = 0;
  }

 private:
  std::filesystem::path path_;
  const OnBytes& on_bytes_;
  FileDescriptor file_;
  size_t unsynced_ = 0;
};

/// The tensor's data in the dtype of the file, of which no more than a piece is in memory at once.
void write_data(const Item& item, Output& output) {
  const TensorView& tensor = *item.tensor;
  if (item.dtype == tensor.dtype) return output.write(tensor.data, tensor.bytes);
  std::vector<std::byte> piece(converted_at_once * bytes_of(item.dtype));
  const size_t count = tensor.bytes / bytes_of(tensor.dtype);
  for (size_t first = 0; first < count; first += converted_at_once) {
    const size_t here = std::min(converted_at_once, count - first);
    try {
      convert(tensor, first, here, item.dtype, piece.data());
    } catch (const Error& error) {
      throw Error("tensor '" + *item.name + "' " + error.message(), {}, error.hint());
    }
    output.write(piece.data(), here * bytes_of(item.dtype));
  }
}

}  // namespace

int64_t write_safetensors(const std::filesystem::path& path,
                          const std::map<std::string, TensorView>& tensors,
                          const std::map<std::string, std::string>& metadata,
                          std::optional<Dtype> floating,
                          const OnBytes& on_bytes) {
  for (const auto& [name, tensor] : tensors) check(name, tensor);
  const std::vector<Item> items = in_file_order(tensors, floating);
  const std::string header = header_of(items, metadata);
  const std::filesystem::path aside = path.string() + ".tmp-" + std::to_string(::getpid());
  Output output(aside, on_bytes);
  auto total = static_cast<int64_t>(header.size());
  try {
    output.write(header.data(), header.size());
    for (const Item& item : items) {
      write_data(item, output);
      total += static_cast<int64_t>(item.bytes);
    }
    output.sync();
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
