#pragma once

#include <filesystem>

#include "backends/libtorch/model/llama_canon.h"
#include "core/weights/checkpoint.h"

namespace forge::worker {

/// Draws every weight from the counter-based generator: the same bits on every device.
void load_initial(LlamaCanon& model, uint64_t seed);

/// Copies tensors of a safetensors file into `tensors` by name; every name must be there with its
/// shape. Throws forge::Error naming the first that is not.
void load_tensors(const weights::SafetensorsFile& file, const NamedTensors& tensors);

/// Tensors as views of CPU memory for a safetensors file; `owners` keeps copies alive.
std::map<std::string, weights::TensorView> views_of(const NamedTensors& tensors,
                                                    std::vector<at::Tensor>& owners);

}  // namespace forge::worker
