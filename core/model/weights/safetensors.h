#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"

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

/// What the bytes of a safetensors file hold.
struct SafetensorsContents {
  std::map<std::string, TensorView> tensors;  ///< views into those bytes
  std::map<std::string, std::string> metadata;
};

/// Reads the header of a whole file's bytes and checks it against them: its length (at most 100
/// MB), JSON in UTF-8, no name twice, dtypes that forge knows, shapes that give the sizes, and data
/// that the tensors cover from its first byte to its last without gap or overlap, as the format
/// demands (https://huggingface.co/docs/safetensors). Memory is a small multiple of the header,
/// whatever it says. Throws Error with the fault alone ("has a gap before tensor 'a'").
SafetensorsContents read_safetensors(const std::byte* bytes, size_t size);

/// A safetensors file, mapped and checked by read_safetensors, whose Error gets the file's name.
/// The views live as long as this object. In a file that forge wrote the data of each tensor is
/// aligned to its dtype; other writers need not do that.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, TensorView>& tensors() const { return contents_.tensors; }
  const TensorView& tensor(const std::string& name) const;  ///< throws Error naming near misses
  const std::map<std::string, std::string>& metadata() const { return contents_.metadata; }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  SafetensorsContents contents_;
};

/// Receives the number of bytes processed since the last call.
using OnBytes = std::function<void(int64_t)>;

/// Writes tensors, those of wider dtypes first and then in the order of their names, the first of
/// them 64-byte aligned. Floating-point tensors are converted to `floating` where that is given, a
/// piece at a time (dtype.h); a value beyond its range is an Error. Written aside, synced,
/// renamed; synced on the way, too, so that no single call takes long. Returns the size of the file
/// in bytes. `on_bytes` is called with the number of bytes of each piece written.
int64_t write_safetensors(const std::filesystem::path& path,
                          const std::map<std::string, TensorView>& tensors,
                          const std::map<std::string, std::string>& metadata = {},
                          std::optional<Dtype> floating = std::nullopt,
                          const OnBytes& on_bytes = {});

/// Some numbers of a tensor, end to end in row-major order.
struct TensorPart {
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;       ///< of the whole tensor
  const std::byte* data = nullptr;  ///< of the numbers, owned by somebody else
  size_t bytes = 0;                 ///< of the numbers; 0: there are none here
  int64_t begin = 0;                ///< the first of them
};

/// Whole tensors as parts.
std::map<std::string, TensorPart> whole_parts(const std::map<std::string, TensorView>& tensors);

/// Writes one writer's parts of a file that several write at once, in any order. All of them name
/// all tensors, and one writes the header. When all have done so, the file has the bytes that
/// write_safetensors gives whole tensors. It grows under its final name; this writer's part is
/// synced. Returns the size of the whole file in bytes. `on_bytes` as above, of what is written.
int64_t write_safetensors_part(const std::filesystem::path& path,
                               const std::map<std::string, TensorPart>& tensors,
                               bool writes_header,
                               const OnBytes& on_bytes = {});

}  // namespace forge::weights
