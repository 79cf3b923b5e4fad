#include "backends/libtorch/worker/weights.h"

#include <ATen/Parallel.h>

#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/model/parameters.h"
#include "core/model/weights/dtype.h"
#include "core/model/weights/model_files.h"

namespace forge::libtorch {
namespace {

constexpr std::pair<weights::Dtype, at::ScalarType> dtypes[] = {
    {weights::Dtype::f64, at::kDouble},
    {weights::Dtype::f32, at::kFloat},
    {weights::Dtype::bf16, at::kBFloat16},
    {weights::Dtype::f16, at::kHalf},
    {weights::Dtype::i64, at::kLong},
    {weights::Dtype::i32, at::kInt},
    {weights::Dtype::u8, at::kByte},
};

weights::Dtype dtype_of(at::ScalarType type) {
  for (const auto& [stored, torch] : dtypes) {
    if (torch == type) return stored;
  }
  throw Error(std::string("weights of type ") + at::toString(type) + " are not supported");
}

at::ScalarType scalar_type_of(weights::Dtype type) {
  for (const auto& [stored, torch] : dtypes) {
    if (stored == type) return torch;
  }
  throw Error("a safetensors dtype without a Torch type");
}

/// A parameter's initial values, drawn by all threads: each number has its own place in the stream.
at::Tensor draw(const model::Parameter& parameter, uint64_t seed) {
  constexpr int64_t fewest = 1 << 14;  // of a thread: a fraction of a millisecond
  at::Tensor values = at::empty(parameter.shape, at::kFloat);
  at::parallel_for(0, values.numel(), fewest, [&](int64_t begin, int64_t end) {
    model::draw_initial(parameter, seed, begin, end - begin, values.data_ptr<float>() + begin);
  });
  return values;
}

/// Copies stored values into a weight. Other writers need not align their data.
void copy_into(const at::Tensor& weight, const weights::TensorView& view) {
  const bool aligned = reinterpret_cast<uintptr_t>(view.data) % weights::bytes_of(view.dtype) == 0;
  at::Tensor copy;
  auto* data = const_cast<std::byte*>(view.data);
  if (!aligned) {
    copy = at::empty(view.shape, scalar_type_of(view.dtype));
    std::memcpy(copy.data_ptr(), view.data, view.bytes);
    data = static_cast<std::byte*>(copy.data_ptr());
  }
  at::Tensor(weight).copy_(at::from_blob(data, view.shape, scalar_type_of(view.dtype)));
}

}  // namespace

WeightTypes weight_types(const config::TrainConfig& train) {
  switch (train.precision) {
    case model::Precision::float32: return {at::kFloat, at::kFloat, std::nullopt};
    case model::Precision::float64: return {at::kDouble, at::kDouble, std::nullopt};
    case model::Precision::bfloat16: break;
  }
  if (train.bfloat16_weights != model::Bfloat16Weights::none)
    return {at::kBFloat16, at::kFloat, std::nullopt};
  return {at::kFloat, at::kFloat, at::kBFloat16};
}

void load_initial(Model& model, uint64_t seed) {
  const at::NoGradGuard no_grad;
  const std::vector<model::Parameter> parameters = model::parameters(model.config());
  const NamedTensors named = model.named_weights();
  const std::map<std::string, at::Tensor> weights(named.begin(), named.end());
  TORCH_CHECK(parameters.size() == weights.size(),
              "the model has ",
              weights.size(),
              " weights, its description ",
              parameters.size());
  for (const model::Parameter& parameter : parameters) {
    const auto found = weights.find(parameter.name);
    TORCH_CHECK(found != weights.end() && found->second.sizes() == at::IntArrayRef(parameter.shape),
                "the model has no weight ",
                parameter.name,
                " ",
                at::IntArrayRef(parameter.shape));
    at::Tensor(found->second).copy_(draw(parameter, seed));
  }
  model.round_matrices();
}

void load_start_weights(Model& model,
                        uint64_t seed,
                        const std::string& folder,
                        const std::string& hash) {
  if (folder.empty()) return load_initial(model, seed);
  const at::NoGradGuard no_grad;
  const weights::ModelFiles files(folder);
  const auto stored = huggingface::model_weights(model.config(), files.tensors());
  if (!hash.empty() && weights::content_hash(stored) != hash) {
    throw Error("the weights in '" + folder + "' are no longer those that the run was planned with",
                "restore them, or plan a new run",
                ExitCode::failed);
  }
  for (const auto& [name, weight] : model.named_weights()) copy_into(weight, stored.at(name));
  model.round_matrices();
}

Model load_model(const worker::Request& request,
                 const config::Experiment& experiment,
                 const at::Device& device) {
  Model model(experiment.model, weight_types(experiment.train), device);
  load_start_weights(
      model, experiment.weights_seed(), request.initial_weights, request.initial_weights_hash);
  return model;
}

void restore_tensors(const weights::SafetensorsFile& file, const NamedParts& parts) {
  const at::NoGradGuard no_grad;
  const std::string file_name = file.path().filename().string();
  std::set<std::string> names;
  for (const NamedPart& part : parts) {
    names.insert(part.name);
    const weights::TensorView& view = file.tensor(part.name);
    if (part.shape != view.shape) {
      throw Error("'" + part.name + "' has another shape in " + file_name + " than in the model");
    }
    if (part.numbers.scalar_type() != scalar_type_of(view.dtype)) {
      throw Error("'" + part.name + "' is " + weights::name_of(view.dtype) + " in " + file_name +
                  " and " + at::toString(part.numbers.scalar_type()) + " in the model");
    }
  }
  for (const auto& [name, view] : file.tensors()) {
    if (names.count(name) == 0) throw Error(file_name + " holds '" + name + "', which is not used");
  }
  for (const NamedPart& part : parts) {
    const weights::TensorView& whole = file.tensor(part.name);
    const size_t before = static_cast<size_t>(part.begin) * weights::bytes_of(whole.dtype);
    copy_into(
        part.numbers,
        {whole.dtype, part.numbers.sizes().vec(), whole.data + before, part.numbers.nbytes()});
  }
}

NamedParts whole_parts(const NamedTensors& tensors) {
  NamedParts parts;
  for (const auto& [name, tensor] : tensors)
    parts.push_back({name, tensor.sizes().vec(), 0, tensor});
  return parts;
}

std::map<std::string, weights::TensorView> views_of(const NamedTensors& tensors,
                                                    std::vector<at::Tensor>& owners) {
  std::map<std::string, weights::TensorView> views;
  for (const auto& [name, part] : views_of(whole_parts(tensors), owners))
    views[name] = {part.dtype, part.shape, part.data, part.bytes};
  return views;
}

std::map<std::string, weights::TensorPart> views_of(const NamedParts& parts,
                                                    std::vector<at::Tensor>& owners) {
  std::map<std::string, weights::TensorPart> views;
  for (const NamedPart& part : parts) {
    owners.push_back(part.numbers.detach().cpu().contiguous());
    const at::Tensor& kept = owners.back();
    views[part.name] = {dtype_of(kept.scalar_type()),
                        part.shape,
                        static_cast<const std::byte*>(kept.data_ptr()),
                        kept.nbytes(),
                        part.begin};
  }
  return views;
}

}  // namespace forge::libtorch
