#include "core/model/weights/checkpoint_parts.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/weights/checkpoint.h"

namespace forge::weights {
namespace {

namespace fs = std::filesystem;

/// A tensor's name and which of its numbers.
struct Named {
  std::string tensor;
  int64_t begin = 0, end = 0;
};

/// What a name says; `numbers` where it is of a whole tensor.
Named named_of(const std::string& name, int64_t numbers) {
  const size_t open = name.rfind('[');
  if (!ends_with(name, "]") || open == std::string::npos) return {name, 0, numbers};
  long long begin = -1, end = -1;
  int read = 0;
  const std::string range = name.substr(open);
  const bool is_range = std::sscanf(range.c_str(), "[%lld:%lld]%n", &begin, &end, &read) == 2 &&
                        static_cast<size_t>(read) == range.size();
  if (!is_range || begin < 0 || end - begin != numbers)
    throw Error("'" + name + "' names no part of " + std::to_string(numbers) + " numbers");
  return {name.substr(0, open), begin, end};
}

int64_t numbers_of(const TensorView& view) {
  return static_cast<int64_t>(view.bytes / bytes_of(view.dtype));
}

}  // namespace

std::string optimizer_file_of(const CheckpointPart& part) {
  if (part.count == 1) return optimizer_file;
  return "optimizer-" + std::to_string(part.rank) + "-of-" + std::to_string(part.count) +
         ".safetensors";
}

bool is_optimizer_file(const std::string& name) {
  return name == optimizer_file ||
         (starts_with(name, "optimizer-") && ends_with(name, ".safetensors"));
}

std::string part_name(const std::string& tensor, int64_t begin, int64_t end) {
  return tensor + "[" + std::to_string(begin) + ":" + std::to_string(end) + "]";
}

OptimizerState::OptimizerState(const fs::path& checkpoint) {
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint)) {
    if (!is_optimizer_file(entry.path().filename().string())) continue;
    files_.emplace_back(entry.path());
    for (const auto& [name, view] : files_.back().tensors()) {
      const Named named = named_of(name, numbers_of(view));
      parts_[named.tensor].push_back({named.begin, named.end, &view});
    }
  }
  if (files_.empty()) throw Error("there is no " + std::string(optimizer_file));
  for (auto& [tensor, parts] : parts_) {
    std::sort(
        parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  }
}

void OptimizerState::read(const std::string& name,
                          Dtype dtype,
                          int64_t numbers,
                          std::byte* to) const {
  const Named wanted = named_of(name, numbers);
  const auto found = parts_.find(wanted.tensor);
  if (found == parts_.end()) throw Error("the optimizer's files have no '" + wanted.tensor + "'");
  const auto size = static_cast<int64_t>(bytes_of(dtype));
  int64_t next = wanted.begin;
  for (const Part& part : found->second) {
    if (part.end <= wanted.begin || part.begin >= wanted.end) continue;
    if (part.view->dtype != dtype)
      throw Error("'" + wanted.tensor + "' has another type of numbers in the optimizer's files");
    if (std::max(part.begin, wanted.begin) != next) break;
    const int64_t end = std::min(part.end, wanted.end);
    std::memcpy(to + (next - wanted.begin) * size,
                part.view->data + (next - part.begin) * size,
                static_cast<size_t>((end - next) * size));
    next = end;
  }
  if (next == wanted.end) return;
  throw Error("the optimizer's files do not have each number of '" + wanted.tensor +
              "' once: " + "number " + std::to_string(next) + " is not where it should be");
}

}  // namespace forge::weights
