#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/weights/safetensors.h"

namespace forge::weights {

/// Names that Hugging Face's transformers gives the weights of a model folder.
constexpr const char* model_file = "model.safetensors";
constexpr const char* model_index_file = "model.safetensors.index.json";

/// Largest file of a sharded model, as transformers writes it.
constexpr int64_t default_shard_bytes = 5'000'000'000;

/// The weights of a folder, mapped: of a checkpoint (weights.safetensors), of one
/// model.safetensors, or of the shards that model.safetensors.index.json names. An index must name
/// plain files beside it, and they must hold exactly the tensors that it gives them. Throws Error
/// naming the file and the fault. The views live as long as this object.
class ModelFiles {
 public:
  explicit ModelFiles(const std::filesystem::path& folder);
  /// Whether the folder has any of these: checkpoints of other backends may have files of their
  /// own.
  static bool are_in(const std::filesystem::path& folder);
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  /// The files of tensors, in the order of their names.
  std::vector<std::filesystem::path> paths() const;

 private:
  void open_shards(const std::filesystem::path& index);
  void add(const std::filesystem::path& path);

  std::vector<SafetensorsFile> files_;
  std::map<std::string, TensorView> tensors_;
};

struct WrittenFile {
  std::string name;
  int64_t bytes = 0;
};

/// Writes model.safetensors into the folder, or, where the tensors take more than `shard_bytes`,
/// model-00001-of-0000N.safetensors and so on with their index. A tensor larger than that has a
/// file of its own. Floating-point tensors become `floating` where that is given. Every file is
/// synced.
std::vector<WrittenFile> write_model_files(const std::filesystem::path& folder,
                                           const std::map<std::string, TensorView>& tensors,
                                           std::optional<Dtype> floating = std::nullopt,
                                           int64_t shard_bytes = default_shard_bytes);

/// Which floating-point tensors have values that are NaN or infinite, for a message: "2 of 64
/// values of 'model.norm.weight' are NaN or infinite", with how many tensors more; "" where all are
/// finite. Reads every value.
std::string not_finite_text(const std::map<std::string, TensorView>& tensors);

/// Hash of names, dtypes, shapes and values, whatever files they lie in.
std::string content_hash(const std::map<std::string, TensorView>& tensors);

}  // namespace forge::weights

namespace forge::huggingface {

/// The weights of `model` among `tensors`, under their names: exactly those of model::parameters().
/// `tensors` has those names, or those of the released linear models (release_names.h).
/// Set aside are what transformers makes anew whatever a file says: buffers of rotary frequencies,
/// and the lm_head of a model whose embeddings are tied. Throws Error naming all kinds of trouble
/// at once, with some of the names: missing, of another shape, no floating-point numbers,
/// unexpected.
std::map<std::string, weights::TensorView> model_weights(
    const model::ModelConfig& model, const std::map<std::string, weights::TensorView>& tensors);

}  // namespace forge::huggingface
