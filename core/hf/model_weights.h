#pragma once

#include <map>
#include <string>

#include "core/config/experiment.h"
#include "core/weights/safetensors.h"

namespace forge::hf {

/// The weights of `model` among `tensors`, under their names: exactly those of model::parameters().
/// Set aside are what transformers makes anew whatever a file says: buffers of rotary frequencies,
/// and the lm_head of a model whose embeddings are tied. Throws Error naming all kinds of trouble
/// at once, with some of the names: missing, of another shape, no floating-point numbers,
/// unexpected.
std::map<std::string, weights::TensorView> model_weights(
    const config::ModelConfig& model, const std::map<std::string, weights::TensorView>& tensors);

}  // namespace forge::hf
