#include "core/model/attention/attention.h"

#include <algorithm>

#include "core/model/config.h"

namespace forge::model {

/// Named, because each kind of block has functions of these names.
namespace attention {
namespace {

void complete_heads(ModelConfig& model, ConfigChecks& checks) {
  AttentionConfig& a = model.attention;
  if (a.num_kv_heads == 0) {
    a.num_kv_heads = a.num_heads;
    checks.derive(
        "model.attention.num_kv_heads", "model.attention.num_heads", std::to_string(a.num_heads));
  }
  if (a.num_heads % a.num_kv_heads != 0) {
    throw checks.complaint({"model.attention.num_kv_heads", "model.attention.num_heads"},
                           quoted("model.attention.num_kv_heads", a.num_kv_heads) +
                               " does not divide " +
                               quoted("model.attention.num_heads", a.num_heads),
                           "each key and value head serves the same number of query heads");
  }
  if (a.head_dim != 0) return;
  if (model.hidden_size % a.num_heads != 0) {
    throw checks.complaint({"model.attention.num_heads", "model.hidden_size"},
                           quoted("model.attention.num_heads", a.num_heads) + " does not divide " +
                               quoted("model.hidden_size", model.hidden_size),
                           "choose heads that divide it, or give model.attention.head_dim");
  }
  a.head_dim = model.hidden_size / a.num_heads;
  checks.derive("model.attention.head_dim", "model.hidden_size", std::to_string(a.head_dim));
}

void check_rotation(const ModelConfig& model, const ConfigChecks& checks) {
  const AttentionConfig& a = model.attention;
  if (a.position.kind != PositionKind::rope) return;
  if (!a.position.rope_dim) {
    if (a.head_dim % 2 == 0) return;
    throw checks.complaint({"model.attention.head_dim", "model.attention.num_heads"},
                           quoted("model.attention.head_dim", a.head_dim) + " is odd",
                           "RoPE rotates channels in pairs; give an even head_dim or an even "
                           "model.attention.position.rope_dim");
  }
  const int rope_dim = *a.position.rope_dim;
  std::string fault;
  if (rope_dim % 2 != 0) fault = " is odd";
  if (rope_dim > a.head_dim)
    fault = " is more than " + quoted("model.attention.head_dim", a.head_dim);
  if (fault.empty()) return;
  throw checks.complaint({"model.attention.position.rope_dim"},
                         quoted("model.attention.position.rope_dim", rope_dim) + fault,
                         "RoPE rotates pairs of a head's channels");
}

void refuse_unused_rotation(ModelConfig& model, ConfigChecks& checks) {
  PositionConfig& position = model.attention.position;
  if (position.kind == PositionKind::rope) return;
  const PositionConfig plain;
  const std::string section = "model.attention.position.";
  const std::string reason = "has no meaning where " + section + "kind is nope";
  const std::string hint =
      "NoPE rotates nothing: leave the key out, or set " + section + "kind rope";
  const std::string kind = section + "kind";
  checks.refuse_unused(section + "theta", position.theta, plain.theta, kind, reason, hint);
  checks.refuse_unused(section + "rope_dim", position.rope_dim, plain.rope_dim, kind, reason, hint);
  checks.refuse_unused(section + "pairing", position.pairing, plain.pairing, kind, reason, hint);
}

void complete(ModelConfig& model, ConfigChecks& checks) {
  const bool heads = checks.attempt([&] { complete_heads(model, checks); });
  checks.attempt([&] { refuse_unused_rotation(model, checks); });
  if (heads) checks.attempt([&] { check_rotation(model, checks); });
}

void add_parameters(const ModelConfig& model, ParameterList& list) {
  const AttentionConfig& a = model.attention;
  const int64_t hidden = model.hidden_size, query = a.query_width(), key = a.key_width();
  const std::string part = "attention";
  list.norm("input_layernorm", hidden);
  list.canon('A', "canonA", hidden);
  list.matrix("self_attn.q_proj", query, hidden, MatrixRole::projection, part);
  list.matrix("self_attn.k_proj", key, hidden, MatrixRole::projection, part);
  list.matrix("self_attn.v_proj", key, hidden, MatrixRole::projection, part);
  list.matrix("self_attn.o_proj", hidden, query, MatrixRole::mixer_output, part);
  if (a.qk_norm != QkNorm::none) {
    const bool full = a.qk_norm == QkNorm::full;
    list.qk_norm("self_attn.q_norm", full ? query : a.head_dim);
    list.qk_norm("self_attn.k_norm", full ? key : a.head_dim);
  }
  list.canon('B', "self_attn.canonB", a.qkv_width());
}

/// Keys that a token sees, averaged over a row: half of all, as half of the square is masked; under
/// a window token t sees min(t, window) of them, counted from 1.
double visible_keys(const AttentionConfig& a, int64_t seq_len) {
  const double row = static_cast<double>(seq_len), all = row / 2;
  const double window = a.window.value_or(0);
  if (!a.window || window >= row) return all;
  const double pairs = window * (window + 1) / 2 + (row - window) * window;
  return std::min(all, pairs / row);
}

/// Scores and weighted sum: two products of head_dim with each key that a token sees.
double mixing_flops(const ModelConfig& model, int64_t seq_len) {
  const double keys = visible_keys(model.attention, seq_len);
  return 2.0 * (2.0 * static_cast<double>(model.attention.query_width()) * keys);
}

SavedActivations saved_activations(const ModelConfig& model) {
  const AttentionConfig& a = model.attention;
  const int64_t query = a.query_width(), key = a.key_width(), qkv = a.qkv_width();
  const bool per_head = a.qk_norm == QkNorm::per_head;
  SavedActivations saved = saved_by_projection(model, 'A');
  if (a.qk_norm == QkNorm::full) saved += {query + key, 2};  // norms: inputs, two roots
  saved += {qkv, 0};              // attention: with Canon-B its input, else q, k and v
  saved += {query, a.num_heads};  // its output, log-sum-exps
  if (a.window) saved += {0, 1};  // the first token that each one sees
  if (!per_head && !is_unfused_canon(model, 'B')) return saved;
  if (model.canon.has('B')) saved += {qkv, 0};  // Canon-B: its input, besides its output
  // Norms: inputs, a root for each head.
  if (per_head) saved += {query + key, int64_t{a.num_heads} + a.num_kv_heads};
  const bool rotated = a.position.kind == PositionKind::rope;
  if (rotated || per_head) saved += {query + key, 0};  // attention: q and k as they went in
  return saved;
}

/// Keys and values of every token, or of those before the next one's window ends.
StateSize state(const ModelConfig& model) {
  const AttentionConfig& a = model.attention;
  const int64_t canon =
      canon_state(model, 'A', model.hidden_size) + canon_state(model, 'B', a.qkv_width());
  const int64_t token = 2 * a.key_width();
  return a.window ? StateSize{0, (*a.window - 1) * token + canon} : StateSize{token, canon};
}

const HuggingFaceKeys& huggingface_keys() {
  static const HuggingFaceKeys keys = {
      {"num_attention_heads", "attention.num_heads"},
      {"num_key_value_heads", "attention.num_kv_heads"},
      {"head_dim", "attention.head_dim"},
      {"rope_theta", "attention.position.theta"},
      {"rope_dim", "attention.position.rope_dim", true},
      {"rope_version",
       "attention.position.pairing",
       true,
       {{"huggingface", R"("huggingface")"}, {"lingua", R"("lingua")"}}},
      {"qk_norm", "attention.qk_norm", true, {{"none", "false"}, {"full", "true"}}}};
  return keys;
}

}  // namespace
}  // namespace attention

const BlockKind attention_block = {"attention",
                                   "AB",
                                   attention::complete,
                                   attention::add_parameters,
                                   attention::mixing_flops,
                                   attention::saved_activations,
                                   attention::state,
                                   attention::huggingface_keys};

}  // namespace forge::model
