#include "core/model/parameters.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/model/config.h"
#include "core/model/kinds.h"

namespace forge::model {

InitRule InitRule::constant(double value) { return {Kind::constant, value}; }

InitRule InitRule::normal(double std) { return {Kind::normal, 0, std}; }

InitRule InitRule::truncated_normal(double std, double cut) {
  return {Kind::truncated_normal, 0, std, cut};
}

InitRule InitRule::uniform(double bound) { return {Kind::uniform, 0, 0, 0, bound}; }

InitRule InitRule::log_uniform(double low, double high) {
  return {Kind::log_uniform, 0, 0, 0, 0, low, high};
}

InitRule InitRule::inverse_softplus(double low, double high) {
  return {Kind::inverse_softplus, 0, 0, 0, 0, low, high};
}

InitRule InitRule::module() { return {Kind::module}; }

namespace {

constexpr int largest_num_layers = 10000;
constexpr int64_t largest_count = int64_t{1} << 48;

/// Forgather's Llama: matrices that end a residual branch, and the gate, shrink with the depth. Its
/// cut lies at +-2, a hundred standard deviations away, and cuts nothing.
InitRule forgather_rule(const ModelConfig& model, MatrixRole role) {
  const double head_std = 1 / std::sqrt(static_cast<double>(model.hidden_size));
  switch (role) {
    case MatrixRole::projection: return InitRule::truncated_normal(0.02, 2);
    case MatrixRole::gate:
    case MatrixRole::mixer_output:
    case MatrixRole::mlp_output:
      return InitRule::truncated_normal(0.02 / std::sqrt(2.0 * model.num_layers), 2);
    case MatrixRole::embedding:
      // A tied matrix is the output projection too: N(0, 1) would give logits of size sqrt(hidden).
      return model.tie_embeddings ? InitRule::truncated_normal(head_std, 3 * head_std)
                                  : InitRule::normal(1);
    case MatrixRole::lm_head: break;
  }
  return InitRule::truncated_normal(head_std, 3 * head_std);
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

/// lingua: init_base_std, or 1/sqrt(fan-in), cut at three standard deviations. The output of a
/// mixer takes its deviation from hidden_size whatever its fan-in is, and the factor that divides
/// it leaves its cut alone. Embedding and output projection follow neither setting.
InitRule lingua_rule(const ModelConfig& model, MatrixRole role, int layer, int64_t inputs) {
  const double hidden_std = 1 / std::sqrt(static_cast<double>(model.hidden_size));
  const double base = model.init_base_std.value_or(hidden_std);
  switch (role) {
    case MatrixRole::projection:
    case MatrixRole::gate: return InitRule::truncated_normal(base, 3 * base);
    case MatrixRole::mixer_output:
      return InitRule::truncated_normal(base / depth_factor(model, layer), 3 * base);
    case MatrixRole::mlp_output: {
      const double fan_in_std = 1 / std::sqrt(static_cast<double>(inputs));
      const double std = model.init_base_std.value_or(fan_in_std) / depth_factor(model, layer);
      return InitRule::truncated_normal(std, 3 * std);
    }
    case MatrixRole::embedding:
    case MatrixRole::lm_head: break;
  }
  return InitRule::truncated_normal(hidden_std, 3 * hidden_std);
}

InitRule matrix_rule(const ModelConfig& model, MatrixRole role, int layer, int64_t inputs) {
  switch (model.init) {
    case ModelInit::forgather: return forgather_rule(model, role);
    case ModelInit::huggingface: return InitRule::normal(0.02);
    case ModelInit::lingua: return lingua_rule(model, role, layer, inputs);
    case ModelInit::release: return mixer_of_layer(model, layer).release_init(role, inputs);
  }
  throw Error("model.init is none of forgather, huggingface, lingua, release");
}

}  // namespace

InitRule release_init_normal(MatrixRole, int64_t) { return InitRule::normal(0.02); }

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

void ParameterList::begin_layer(int layer) {
  layer_ = layer;
  model_ = layer < 0 ? &whole_ : &whole_.of_layer(layer);
  prefix_ = layer < 0 ? "" : "model.layers." + std::to_string(layer) + ".";
}

void ParameterList::matrix(const std::string& module,
                           int64_t outputs,
                           int64_t inputs,
                           MatrixRole role,
                           const std::string& part) {
  const InitRule rule = matrix_rule(*model_, role, std::max(layer_, 0), inputs);
  add({module + ".weight", {outputs, inputs}, rule, part, true});
}

void ParameterList::low_rank(const std::string& module,
                             int64_t outputs,
                             int64_t inputs,
                             int64_t rank,
                             const std::string& part) {
  const double std = std::sqrt(0.02) / std::sqrt(std::sqrt(static_cast<double>(rank)));
  add({module + ".weight", {outputs, inputs}, InitRule::normal(std), part, true});
}

void ParameterList::weight(const std::string& name,
                           std::vector<int64_t> shape,
                           const InitRule& init,
                           const std::string& part) {
  add({name, std::move(shape), init, part, false});
}

void ParameterList::own_weight(const std::string& name,
                               std::vector<int64_t> shape,
                               MatrixRole role,
                               const std::string& part) {
  // Products take a vector from the last dimension to the others, as those of nn.Linear do.
  own_weight(name, shape, matrix_rule(*model_, role, std::max(layer_, 0), shape.back()), part);
}

void ParameterList::own_weight(const std::string& name,
                               std::vector<int64_t> shape,
                               const InitRule& init,
                               const std::string& part) {
  const bool is_matrix = shape.size() == 2;
  add({name, std::move(shape), init, part, is_matrix});
}

void ParameterList::norm(const std::string& module, int64_t width) {
  for (const NormWeight& weight : norm_weights(model_->norm)) {
    add({module + "." + weight.name, {width}, InitRule::constant(weight.initial), "norm", false});
  }
}

void ParameterList::output_norm(const std::string& module, int64_t width) {
  add({module + ".weight", {width}, {}, "norm", false});
}

void ParameterList::short_conv(const std::string& module,
                               int64_t channels,
                               const InitRule& init,
                               bool bias) {
  if (!model_->canon.has('b')) return;
  add({module + ".weight", {channels, 1, short_conv_taps}, init, "short_conv", false});
  if (bias) add({module + ".bias", {channels}, init, "short_conv", false});
}

void ParameterList::qk_norm(const std::string& module, int64_t width) {
  add({module + ".weight", {width}, {}, "qk_norm", false});
}

void ParameterList::canon(char position, const std::string& module, int64_t channels) {
  add_canon(position, module, channels);
  add_blocks_at(position, *model_, *this);
}

void ParameterList::add_canon(char position, const std::string& module, int64_t channels) {
  if (!model_->canon.has(position)) return;
  const int64_t kernel = model_->canon.kernel;
  // PyTorch's default for a depthwise convolution.
  const InitRule rule = InitRule::uniform(1 / std::sqrt(static_cast<double>(kernel)));
  const std::string part = std::string("canon_") + static_cast<char>(position - 'A' + 'a');
  add({module + ".weight", {channels, 1, kernel}, rule, part, false});
}

void ParameterList::add(Parameter parameter) {
  parameter.name = prefix_ + parameter.name;
  total_ += parameter.count();
  if (total_ > largest_count) throw Error("the model has more than 2^48 weights");
  parameters_.push_back(std::move(parameter));
}

std::vector<Parameter> parameters(const ModelConfig& model) {
  if (model.num_layers > largest_num_layers) {
    throw Error("model.num_layers is " + std::to_string(model.num_layers) + "; at most " +
                std::to_string(largest_num_layers) + " can be built");
  }
  const int64_t vocab = model.vocab_size, hidden = model.hidden_size;
  ParameterList list(model);
  list.matrix("model.embed_tokens", vocab, hidden, MatrixRole::embedding, "embedding");
  for (int layer = 0; layer < model.num_layers; ++layer) {
    list.begin_layer(layer);
    for (const BlockKind* block : blocks_of_layer(model, layer))
      block->add_parameters(model.of_layer(layer), list);
  }
  list.begin_layer(-1);
  list.norm("model.norm", hidden);
  if (!model.tie_embeddings) {
    list.matrix("lm_head", vocab, hidden, MatrixRole::lm_head, "lm_head");
  }
  return list.take();
}

int64_t parameter_count(const ModelConfig& model) {
  int64_t total = 0;
  for (const Parameter& parameter : parameters(model)) total += parameter.count();
  return total;
}

namespace {

/// Some of the numbers that a stream holds for a parameter.
struct Range {
  uint64_t stream, seed;
  int64_t first, count;
};

/// values[i] = transform(u) with u in (0, 1) made of word first + i of the stream. The numbers are
/// computed in double and rounded once.
template <class Transform>
void fill(const Range& range, float* values, Transform transform) {
  const auto stream_low = static_cast<uint32_t>(range.stream);
  const auto stream_high = static_cast<uint32_t>(range.stream >> 32);
  const int64_t end = range.first + range.count;
  for (int64_t number = range.first; number < end;) {
    const auto block = static_cast<uint64_t>(number / 4);
    const auto words = philox(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream_low, stream_high},
        range.seed);
    const int64_t block_end = std::min(end, number / 4 * 4 + 4);
    for (; number < block_end; ++number) {
      const uint32_t word = words[static_cast<size_t>(number % 4)];
      *values++ = static_cast<float>(transform(open_uniform(word)));
    }
  }
}

/// P(X <= -cut) of a normal of deviation `std`, rounded to 2^-40: C libraries may differ in the
/// last bit of erfc, and this bound enters every value drawn.
double tail_below(double cut, double std) {
  return std::round(normal_cdf(-cut / std) * 0x1p40) * 0x1p-40;
}

}  // namespace

void draw_initial(
    const Parameter& parameter, uint64_t seed, int64_t first, int64_t count, float* values) {
  const InitRule& rule = parameter.init;
  const Range range{stream_number(parameter.name), seed, first, count};
  switch (rule.kind) {
    case InitRule::Kind::constant:
      std::fill_n(values, count, static_cast<float>(rule.value));
      break;
    case InitRule::Kind::normal:
      fill(range, values, [&](double u) { return rule.std * normal_quantile(u); });
      break;
    case InitRule::Kind::truncated_normal: {
      const double tail = tail_below(rule.cut, rule.std);
      fill(range, values, [&](double u) {
        return std::clamp(
            rule.std * normal_quantile(tail + u * (1 - 2 * tail)), -rule.cut, rule.cut);
      });
      break;
    }
    case InitRule::Kind::uniform:
      fill(range, values, [&](double u) { return rule.bound * (2 * u - 1); });
      break;
    case InitRule::Kind::log_uniform:
      fill(range, values, [&](double u) {
        return portable_log(rule.low + (rule.high - rule.low) * u);
      });
      break;
    case InitRule::Kind::inverse_softplus: {
      const double low = portable_log(rule.low), high = portable_log(rule.high);
      fill(range, values, [&](double u) {
        const double wanted = portable_exp(low + (high - low) * u);
        return wanted + portable_log(1 - portable_exp(-wanted));
      });
      break;
    }
    case InitRule::Kind::module:
      throw Error("only the block's own constructor draws '" + parameter.name + "'",
                  "the backend pytorch calls it");
  }
}

void draw_initial(const Parameter& parameter, uint64_t seed, float* values) {
  draw_initial(parameter, seed, 0, parameter.count(), values);
}

}  // namespace forge::model
