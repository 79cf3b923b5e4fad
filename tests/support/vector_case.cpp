#include "tests/support/vector_case.h"

#include <cstdlib>
#include <set>

#include "core/base/error.h"
#include "core/model/kinds.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// Takes keys out of a config and knows at the end which nobody asked for.
class Options {
 public:
  explicit Options(const json& config) : config_(config) {}

  const json& take(const std::string& key) {
    taken_.insert(key);
    if (!config_.contains(key)) throw Error("the case's config has no '" + key + "'");
    return config_.at(key);
  }
  template <class T>
  T get(const std::string& key) {
    return take(key).get<T>();
  }
  /// The value that stands at the place of the option's in `known`.
  template <class T>
  T choose(const std::string& key, const std::vector<std::pair<json, T>>& known) {
    const json& value = take(key);
    for (const auto& [name, meant] : known) {
      if (name == value) return meant;
    }
    throw Error("the case's '" + key + "' is " + value.dump() + ", which forge does not have");
  }
  void finish() const {
    for (const auto& [key, value] : config_.items()) {
      if (taken_.count(key) == 0) {
        throw Error("the case's option '" + key + "': " + value.dump() + " is unknown");
      }
    }
  }

 private:
  const json& config_;
  std::set<std::string> taken_;
};

}  // namespace

std::filesystem::path vectors_dir() {
  const char* chosen = std::getenv("FORGE_VECTORS");
  return chosen && *chosen ? std::filesystem::path(chosen) : tests_dir() / "vectors";
}

std::filesystem::path shared_vector_file(const std::string& name) {
  const std::filesystem::path own = vectors_dir() / name;
  return std::filesystem::exists(own) ? own : tests_dir() / "vectors" / name;
}

VectorCase read_vector_case(const json& config) {
  using config::ZLossKind;
  using model::Activation;
  using model::PositionKind;
  using model::QkNorm;
  using model::RopePairing;
  Options options(config);
  VectorCase read;
  model::ModelConfig& model = read.model;
  model.vocab_size = options.get<int>("vocab_size");
  model.hidden_size = options.get<int>("hidden_size");
  model.mlp.intermediate_size = options.get<int>("intermediate_size");
  model.num_layers = options.get<int>("num_hidden_layers");
  model.attention.num_heads = options.get<int>("num_attention_heads");
  model.attention.num_kv_heads = options.get<int>("num_key_value_heads");
  model.attention.head_dim = options.get<int>("head_dim");
  model.norm.eps = options.get<double>("rms_norm_eps");
  model.tie_embeddings = options.get<bool>("tie_word_embeddings");
  model.attention.position.theta = options.get<double>("rope_theta");
  model.attention.position.kind = options.choose<PositionKind>(
      "nope", {{false, PositionKind::rope}, {true, PositionKind::nope}});
  const json& rope_dim = options.take("rope_dim");
  if (!rope_dim.is_null()) model.attention.position.rope_dim = rope_dim.get<int>();
  model.attention.position.pairing = options.choose<RopePairing>(
      "rope_version", {{"huggingface", RopePairing::huggingface}, {"lingua", RopePairing::lingua}});
  model.canon.set = options.get<std::string>("canon_set");
  model.canon.kernel = options.get<int>("canon_kernel");
  model.canon.residual = options.get<bool>("canon_residual");
  model.canon.activation = options.choose<Activation>(
      "canon_activation", {{false, Activation::none}, {true, Activation::silu}});
  model.canon.bias = options.choose<bool>("canon_bias", {{false, false}});
  model.attention.qk_norm = options.choose<QkNorm>(
      "qk_norm", {{false, QkNorm::none}, {true, QkNorm::full}, {"per_head", QkNorm::per_head}});
  read.z_loss.kind = options.choose<ZLossKind>("z_loss",
                                               {{nullptr, ZLossKind::none},
                                                {"palm", ZLossKind::palm},
                                                {"lingua_code", ZLossKind::lingua_code}});
  options.finish();
  return read;
}

model::ModelConfig read_linear_case(const json& config) {
  Options options(config);
  model::ModelConfig model;
  const std::string family = options.choose<std::string>(
      "family", {{"gla5", "gla5"}, {"gdn2", "gdn2"}, {"mamba2", "mamba2"}});
  model.layers = {family};
  model.vocab_size = options.get<int>("vocab_size");
  model.hidden_size = options.get<int>("hidden_size");
  model.mlp.intermediate_size = options.get<int>("intermediate_size");
  model.num_layers = options.get<int>("n_layers");
  model.norm.eps = options.get<double>("eps");
  model.canon.set = options.get<std::string>("canon_set");
  const int heads = options.get<int>("n_heads"), state = options.get<int>("state");
  const auto expand_k = options.get<double>("expand_k"), expand_v = options.get<double>("expand_v");
  const json& gate_rank = options.take("output_gate_rank");
  const int decay_rank = options.get<int>("gate_low_rank_dim");
  const auto normalizer = options.get<double>("gate_logit_normalizer");
  options.choose<int>("n_groups", {{1, 1}});
  options.finish();
  const auto set_heads = [&](auto& mixer) {
    mixer.num_heads = heads;
    mixer.expand_k = expand_k;
    mixer.expand_v = expand_v;
    mixer.output_gate_rank.reset();
    if (!gate_rank.is_null()) mixer.output_gate_rank = gate_rank.get<int>();
  };
  if (family == "gla5") {
    set_heads(model.gla5);
    model.gla5.gate_rank = decay_rank;
    model.gla5.gate_normalizer = normalizer;
  } else if (family == "gdn2") {
    set_heads(model.gdn2);
  } else {
    model.mamba2.num_heads = heads;
    model.mamba2.expand = static_cast<int>(expand_v);
    model.mamba2.state_size = state;
  }
  model::complete_model(model);
  return model;
}

std::string vector_weight_name(const std::string& name, const model::ModelConfig& model) {
  if (model.attention.qk_norm != model::QkNorm::per_head) return name;
  for (const std::string norm : {"q_norm", "k_norm"}) {
    const size_t at = name.find(norm + ".weight");
    if (at != std::string::npos) return name.substr(0, at) + norm + "_head.weight";
  }
  return name;
}

}  // namespace forge::tests
