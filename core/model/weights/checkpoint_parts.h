#pragma once

#include <cstddef>
#include <filesystem>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "core/model/weights/safetensors.h"

namespace forge::weights {

/// Which of several processes that write a checkpoint together.
struct CheckpointPart {
  int rank = 0;
  int count = 1;

  bool is_first() const { return rank == 0; }
};

/// The file in which a process writes its part of the optimizer's state: `optimizer.safetensors`
/// of one alone, `optimizer-1-of-4.safetensors` of the second of four.
std::string optimizer_file_of(const CheckpointPart& part);
bool is_optimizer_file(const std::string& name);

/// Name of a part of a tensor in such a file: "name[begin:end]", the numbers from begin up to end
/// of its elements in row-major order.
std::string part_name(const std::string& tensor, int64_t begin, int64_t end);

/// The optimizer's state of a checkpoint, however many processes wrote it.
class OptimizerState {
 public:
  /// Maps the files. Throws Error where one is no safetensors file, or there is none.
  explicit OptimizerState(const std::filesystem::path& checkpoint);

  /// Copies the numbers of a tensor, or of a part of one, into memory for them. Throws Error unless
  /// the files hold each of these numbers, once, in this dtype.
  void read(const std::string& name, Dtype dtype, int64_t numbers, std::byte* to) const;

 private:
  struct Part {
    int64_t begin, end;
    const TensorView* view;
  };
  std::list<SafetensorsFile> files_;
  std::map<std::string, std::vector<Part>> parts_;  ///< of each tensor, in their order
};

}  // namespace forge::weights
