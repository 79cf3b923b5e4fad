#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/weights/safetensors.h"

/// The files of the released linear models (PhysicsLM4: GLACanon, GatedDeltaNetCanon and
/// Mamba2Canon), which have names of their own and lay some matrices on one another.
namespace forge::weights {

/// Where a weight of forge's lies in such a file.
struct ReleasePlace {
  std::string name;       ///< of the file's tensor
  int64_t first_row = 0;  ///< in it
  int64_t rows = 0;       ///< of the weight
  int64_t file_rows = 0;  ///< of the file's tensor
};

/// The kind of mixer whose released code has such models; "" where none has: a hybrid, attention,
/// layers with settings of their own.
std::string release_kind(const model::ModelConfig& model);

/// The place of each weight of the model, by its own name. The model has a release_kind.
std::map<std::string, ReleasePlace> release_places(const model::ModelConfig& model);

/// The tensors of a file under forge's names, as views into it; those that are no weight of the
/// model keep their names. A file with forge's names is left as it is. Set aside is the short
/// convolution of a Mamba2 that does not use it.
std::map<std::string, TensorView> from_release(const model::ModelConfig& model,
                                               const std::map<std::string, TensorView>& tensors);

/// The model's weights as its released code stores them. Matrices that lie on one another are
/// copied; all others are views into `weights`.
class ReleaseTensors {
 public:
  ReleaseTensors(const model::ModelConfig& model, const std::map<std::string, TensorView>& weights);
  const std::map<std::string, TensorView>& tensors() const { return tensors_; }

 private:
  std::map<std::string, TensorView> tensors_;
  std::deque<std::vector<std::byte>> copies_;
};

}  // namespace forge::weights
