#pragma once

#include <filesystem>

#include "backends/libtorch/model/model.h"
#include "backends/libtorch/worker/flat_weights.h"
#include "core/model/weights/checkpoint.h"
#include "core/worker/messages.h"

namespace forge::libtorch {

/// In which types a training config keeps its weights.
WeightTypes weight_types(const config::TrainConfig& train);

/// Draws every weight from the counter-based generator: the same bits on every device.
void load_initial(Model& model, uint64_t seed);

/// The weights that a run begins with: those of `folder`, a checkpoint's or a model's of Hugging
/// Face, or drawn ones where it is "". `hash`, where given, is what weights::content_hash must say
/// of them. Throws forge::Error where the weights are not those of the model or no longer the same.
void load_start_weights(Model& model,
                        uint64_t seed,
                        const std::string& folder,
                        const std::string& hash);

/// The model of a request with the weights that a run of it begins with.
Model load_model(const worker::Request& request,
                 const config::Experiment& experiment,
                 const at::Device& device);

/// Copies the numbers of a safetensors file into the parts by name, bit for bit: the names must be
/// the same on both sides, and so must shape and dtype of each whole tensor. Throws forge::Error
/// naming the first that is not.
void restore_tensors(const weights::SafetensorsFile& file, const NamedParts& parts);

/// Whole tensors as parts.
NamedParts whole_parts(const NamedTensors& tensors);

/// Tensors as views of CPU memory for a safetensors file; `owners` keeps copies alive.
std::map<std::string, weights::TensorView> views_of(const NamedTensors& tensors,
                                                    std::vector<at::Tensor>& owners);
std::map<std::string, weights::TensorPart> views_of(const NamedParts& parts,
                                                    std::vector<at::Tensor>& owners);

}  // namespace forge::libtorch
