#include "tests/core/huggingface/sample_model.h"

#include "core/data/tokenizer/tokenizer_json.h"
#include "core/model/parameters.h"
#include "core/model/weights/checkpoint.h"

namespace forge::tests {

model::ModelConfig small_model() {
  model::ModelConfig model;
  model.vocab_size = 270;
  model.hidden_size = 8;
  model.mlp.intermediate_size = 12;
  model.num_layers = 2;
  model.attention.num_heads = 2;
  model.attention.num_kv_heads = 1;
  model.attention.head_dim = 4;
  model.init = model::ModelInit::huggingface;
  return model;
}

SampleWeights::SampleWeights(const model::ModelConfig& model) {
  for (const model::Parameter& parameter : model::parameters(model)) {
    std::vector<float>& values = values_.emplace_back(static_cast<size_t>(parameter.count()));
    model::draw_initial(parameter, 7, values.data());
    views[parameter.name] = {weights::Dtype::f32,
                             parameter.shape,
                             reinterpret_cast<const std::byte*>(values.data()),
                             4 * values.size()};
  }
}

std::filesystem::path write_sample_checkpoint(const std::filesystem::path& folder,
                                              const model::ModelConfig& model) {
  const SampleWeights sample(model);
  weights::CheckpointState state;
  state.step = 30;
  return weights::write_checkpoint(folder / "checkpoints", state, sample.views, {});
}

std::filesystem::path write_sample_tokenizer(const std::filesystem::path& folder) {
  data::save_tokenizer(data::Tokenizer(data::initial_vocabulary()), folder / "tokenizer.json");
  return folder / "tokenizer.json";
}

}  // namespace forge::tests
