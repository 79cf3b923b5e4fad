#include "core/model/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"

namespace forge::model {
namespace {

using config::InitStdFactor;
using config::ModelConfig;
using config::ModelInit;
using config::QkNorm;

constexpr int largest_num_layers = 10000;
constexpr int64_t largest_count = int64_t{1} << 48;

InitRule ones() { return {}; }

InitRule normal(double std) {
  InitRule rule;
  rule.kind = InitRule::Kind::normal;
  rule.std = std;
  return rule;
}

InitRule truncated_normal(double std, double cut) {
  InitRule rule;
  rule.kind = InitRule::Kind::truncated_normal;
  rule.std = std;
  rule.cut = cut;
  return rule;
}

InitRule uniform(double bound) {
  InitRule rule;
  rule.kind = InitRule::Kind::uniform;
  rule.bound = bound;
  return rule;
}

/// The initial distribution of each kind of matrix.
struct Recipe {
  InitRule embedding, query_key_value, attention_output, gate, up, down, lm_head;
};

/// Forgather's Llama: matrices that end a residual branch, and the gate, shrink with the depth. Its
/// cut lies at +-2, a hundred standard deviations away, and cuts nothing.
Recipe forgather_recipe(const ModelConfig& model) {
  const InitRule plain = truncated_normal(0.02, 2);
  const InitRule shrunk = truncated_normal(0.02 / std::sqrt(2.0 * model.num_layers), 2);
  const double head_std = 1 / std::sqrt(static_cast<double>(model.hidden_size));
  const InitRule head = truncated_normal(head_std, 3 * head_std);
  // A tied matrix is the output projection too: N(0, 1) would give logits of size sqrt(hidden).
  const InitRule embedding = model.tie_embeddings ? head : normal(1);
  return {embedding, plain, shrunk, shrunk, plain, shrunk, head};
}

Recipe huggingface_recipe() {
  const InitRule rule = normal(0.02);
  return {rule, rule, rule, rule, rule, rule, rule};
}

/// lingua's InitStdFactor.
double depth_factor(const ModelConfig& model, int layer) {
  switch (model.init_std_factor) {
    case InitStdFactor::disabled: return 1;
    case InitStdFactor::global_depth: return std::sqrt(2.0 * (model.num_layers + 1));
    case InitStdFactor::current_depth: return std::sqrt(2.0 * (layer + 1));
    case InitStdFactor::dim_ratio: return model.hidden_size / 4096.0;
  }
  throw Error("model.init_std_factor is none of disabled, global_depth, current_depth, dim_ratio");
}

/// lingua: init_base_std, or 1/sqrt(fan-in), cut at three standard deviations. The attention output
/// takes its deviation from hidden_size whatever its fan-in is, and where the factor divides it,
/// its cut stays where it was. Embedding and output projection follow neither setting.
Recipe lingua_recipe(const ModelConfig& model, int layer) {
  const double hidden_std = 1 / std::sqrt(static_cast<double>(model.hidden_size));
  const double mlp_std = 1 / std::sqrt(static_cast<double>(model.intermediate_size));
  const double base = model.init_base_std.value_or(hidden_std);
  const double factor = depth_factor(model, layer);
  const double down = model.init_base_std.value_or(mlp_std) / factor;
  const InitRule ends = truncated_normal(hidden_std, 3 * hidden_std);
  const InitRule plain = truncated_normal(base, 3 * base);
  return {ends,
          plain,
          truncated_normal(base / factor, 3 * base),
          plain,
          plain,
          truncated_normal(down, 3 * down),
          ends};
}

Recipe recipe_of(const ModelConfig& model, int layer) {
  switch (model.init) {
    case ModelInit::forgather: return forgather_recipe(model);
    case ModelInit::huggingface: return huggingface_recipe();
    case ModelInit::lingua: return lingua_recipe(model, layer);
  }
  throw Error("model.init is none of forgather, huggingface, lingua");
}

/// Collects the parameters of one block after another.
class Builder {
 public:
  explicit Builder(const ModelConfig& model) : model_(model), recipe_(recipe_of(model, 0)) {}

  void embedding() {
    add("model.embed_tokens", {model_.vocab_size, hidden()}, recipe_.embedding, Part::embedding);
  }

  void block(int layer) {
    recipe_ = recipe_of(model_, layer);
    const std::string block = "model.layers." + std::to_string(layer) + ".";
    norm(block + "input_layernorm", hidden(), Part::norm);
    if (model_.canon.has('A')) canon(block + "canonA", hidden(), Part::canon_a);
    attention(block + "self_attn.");
    norm(block + "post_attention_layernorm", hidden(), Part::norm);
    if (model_.canon.has('C')) canon(block + "canonC", hidden(), Part::canon_c);
    mlp(block + "mlp.");
  }

  void head() {
    norm("model.norm", hidden(), Part::norm);
    if (model_.tie_embeddings) return;
    add("lm_head", {model_.vocab_size, hidden()}, recipe_.lm_head, Part::lm_head);
  }

  std::vector<Parameter> take() { return std::move(parameters_); }

 private:
  void attention(const std::string& at) {
    const int64_t query = int64_t{model_.num_heads} * model_.head_dim;
    const int64_t key_value = int64_t{model_.num_kv_heads} * model_.head_dim;
    add(at + "q_proj", {query, hidden()}, recipe_.query_key_value, Part::attention);
    add(at + "k_proj", {key_value, hidden()}, recipe_.query_key_value, Part::attention);
    add(at + "v_proj", {key_value, hidden()}, recipe_.query_key_value, Part::attention);
    add(at + "o_proj", {hidden(), query}, recipe_.attention_output, Part::attention);
    if (model_.qk_norm != QkNorm::none) {
      const bool full = model_.qk_norm == QkNorm::full;
      norm(at + "q_norm", full ? query : model_.head_dim, Part::qk_norm);
      norm(at + "k_norm", full ? key_value : model_.head_dim, Part::qk_norm);
    }
    if (model_.canon.has('B')) canon(at + "canonB", query + 2 * key_value, Part::canon_b);
  }

  void mlp(const std::string& at) {
    const int64_t width = model_.intermediate_size;
    add(at + "gate_proj", {width, hidden()}, recipe_.gate, Part::mlp);
    add(at + "up_proj", {width, hidden()}, recipe_.up, Part::mlp);
    add(at + "down_proj", {hidden(), width}, recipe_.down, Part::mlp);
    if (model_.canon.has('D')) canon(at + "canonD", 2 * width, Part::canon_d);
  }

  void norm(const std::string& module, int64_t width, Part part) {
    add(module, {width}, ones(), part);
  }

  /// PyTorch's default for a depthwise convolution: uniform in +-1/sqrt(kernel).
  void canon(const std::string& module, int64_t channels, Part part) {
    const int64_t kernel = model_.canon.kernel;
    const double bound = 1 / std::sqrt(static_cast<double>(kernel));
    add(module, {channels, 1, kernel}, uniform(bound), part);
  }

  void add(const std::string& module, std::vector<int64_t> shape, const InitRule& init, Part part) {
    parameters_.push_back({module + ".weight", std::move(shape), init, part});
    total_ += parameters_.back().count();
    if (total_ > largest_count) throw Error("the model has more than 2^48 weights");
  }

  int64_t hidden() const { return model_.hidden_size; }

  const ModelConfig& model_;
  Recipe recipe_;  ///< of the current block
  std::vector<Parameter> parameters_;
  int64_t total_ = 0;
};

}  // namespace

const std::string& name_of(Part part) {
  static const std::array<std::string, part_count> names = {"embedding",
                                                            "attention",
                                                            "qk_norm",
                                                            "canon_a",
                                                            "canon_b",
                                                            "canon_c",
                                                            "canon_d",
                                                            "mlp",
                                                            "norm",
                                                            "lm_head"};
  return names[static_cast<size_t>(part)];
}

int64_t Parameter::count() const {
  int64_t product = 1;
  for (const int64_t size : shape) {
    if (size > 0 && product > largest_count / size) {
      throw Error("'" + name + "' has more than 2^48 weights");
    }
    product *= size;
  }
  return product;
}

std::vector<Parameter> parameters(const ModelConfig& model) {
  if (model.num_layers > largest_num_layers) {
    throw Error("model.num_layers is " + std::to_string(model.num_layers) + "; at most " +
                std::to_string(largest_num_layers) + " can be built");
  }
  Builder builder(model);
  builder.embedding();
  for (int layer = 0; layer < model.num_layers; ++layer) builder.block(layer);
  builder.head();
  return builder.take();
}

int64_t parameter_count(const ModelConfig& model) {
  int64_t total = 0;
  for (const Parameter& parameter : parameters(model)) total += parameter.count();
  return total;
}

}  // namespace forge::model
