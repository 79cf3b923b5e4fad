#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/fs.h"

namespace forge::weights {

enum class Dtype { f64, f32, f16, bf16, i64, i32, u8 };
size_t bytes_of(Dtype dtype);

/// A tensor's bytes, row-major, owned by somebody else.
struct TensorView {
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;  ///< empty: a single value
  const std::byte* data = nullptr;
  size_t bytes = 0;
};

/// A safetensors file, mapped (https://huggingface.co/docs/safetensors). Opening checks the
/// header's length, JSON, names, dtypes, offsets (in range, without gap or overlap, matching the
/// shapes) and throws Error naming the file and the fault. The views live as long as this object.
/// In a file that forge wrote the data of each tensor is aligned to its dtype; other writers need
/// not do that.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const TensorView& tensor(const std::string& name) const;  ///< throws Error naming near misses
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writes tensors, those of wider dtypes first and then in the order of their names, the first of
/// them 64-byte aligned. Written aside, synced, renamed. Returns the size of the file in bytes.
int64_t write_safetensors(const std::filesystem::path& path,
                          const std::map<std::string, TensorView>& tensors,
                          const std::map<std::string, std::string>& metadata = {});

}  // namespace forge::weights
