#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/complaint.h"
#include "core/config/fields.h"
#include "core/config/keys.h"

namespace forge::config {
namespace {

void check_required(const Draft& draft) {
  for (const Key& key : all_keys()) {
    if (!key.required || key.is_named() || draft.origins.at(key.path).set_by.layer != default_layer) continue;
    const bool no_model =
        draft.experiment.model.hidden_size == 0 && draft.experiment.model.num_layers == 0;
    throw Error(
        "missing key '" + key.path + "'",
        draft.document,
        no_model && starts_with(key.path, "model.")
            ? "the config has no model: give the section 'model', or take it from a project "
              "of models with !call:forge:from_project"
            : key.path + ": " + key.help);
  }
}

void complete_heads(Draft& draft) {
  ModelConfig& m = draft.experiment.model;
  if (m.num_kv_heads == 0) {
    m.num_kv_heads = m.num_heads;
    derive(draft, "model.num_kv_heads", "model.num_heads", std::to_string(m.num_heads));
  }
  if (m.num_heads % m.num_kv_heads != 0) {
    throw complaint(draft,
                    {"model.num_kv_heads", "model.num_heads"},
                    quoted("model.num_kv_heads", m.num_kv_heads) + " does not divide " +
                        quoted("model.num_heads", m.num_heads),
                    "each key and value head serves the same number of query heads");
  }
  if (m.head_dim != 0) return;
  if (m.hidden_size % m.num_heads != 0) {
    throw complaint(draft,
                    {"model.num_heads", "model.hidden_size"},
                    quoted("model.num_heads", m.num_heads) + " does not divide " +
                        quoted("model.hidden_size", m.hidden_size),
                    "choose heads that divide it, or give model.head_dim");
  }
  m.head_dim = m.hidden_size / m.num_heads;
  derive(draft, "model.head_dim", "model.hidden_size", std::to_string(m.head_dim));
}

void check_rotation(const Draft& draft) {
  const ModelConfig& m = draft.experiment.model;
  if (m.position.kind != PositionKind::rope) return;
  if (!m.position.rope_dim && m.head_dim % 2 != 0) {
    throw complaint(draft,
                    {"model.head_dim", "model.num_heads"},
                    quoted("model.head_dim", m.head_dim) + " is odd",
                    "RoPE rotates channels in pairs; give an even head_dim or an even "
                    "model.position.rope_dim");
  }
  if (!m.position.rope_dim) return;
  const int rope_dim = *m.position.rope_dim;
  std::string fault;
  if (rope_dim % 2 != 0) fault = " is odd";
  if (rope_dim > m.head_dim) fault = " is more than " + quoted("model.head_dim", m.head_dim);
  if (fault.empty()) return;
  throw complaint(draft,
                  {"model.position.rope_dim"},
                  quoted("model.position.rope_dim", rope_dim) + fault,
                  "RoPE rotates pairs of a head's channels");
}

void complete_canon_set(Draft& draft) {
  std::string& set = draft.experiment.model.canon.set;
  const char* hint = "give letters of ABCD, each at most once; \"\" is no Canon layer";
  for (size_t i = 0; i < set.size(); ++i) {
    const std::string letter(1, set[i]);
    const std::string whole = "model.canon.set '" + set + "' ";
    if (letter.find_first_of("ABCD") == std::string::npos) {
      throw complaint(draft,
                      {"model.canon.set"},
                      whole + "has '" + letter + "', which is no Canon position",
                      hint);
    }
    if (set.find(letter, i + 1) != std::string::npos) {
      throw complaint(draft, {"model.canon.set"}, whole + "has '" + letter + "' twice", hint);
    }
  }
  std::sort(set.begin(), set.end());
}

void refuse_unused_rotation(Draft& draft) {
  PositionConfig& position = draft.experiment.model.position;
  if (position.kind == PositionKind::rope) return;
  const PositionConfig plain;
  const char* reason = "has no meaning where model.position.kind is nope";
  const char* hint = "NoPE rotates nothing: leave the key out, or set model.position.kind rope";
  const char* kind = "model.position.kind";
  refuse_unused(draft, "model.position.theta", position.theta, plain.theta, kind, reason, hint);
  refuse_unused(
      draft, "model.position.rope_dim", position.rope_dim, plain.rope_dim, kind, reason, hint);
  refuse_unused(
      draft, "model.position.pairing", position.pairing, plain.pairing, kind, reason, hint);
}

void refuse_unused_canon(Draft& draft) {
  CanonConfig& canon = draft.experiment.model.canon;
  if (canon.bias) {
    throw complaint(draft,
                    {"model.canon.bias"},
                    "model.canon.bias true is not supported",
                    "a Canon layer is a convolution without bias, in the paper and in its code");
  }
  if (!canon.set.empty()) return;
  const CanonConfig plain;
  const char* reason = "has no meaning where model.canon.set is empty";
  const char* hint = "name the positions in model.canon.set, or leave the key out";
  const char* set = "model.canon.set";
  refuse_unused(draft, "model.canon.kernel", canon.kernel, plain.kernel, set, reason, hint);
  refuse_unused(draft, "model.canon.residual", canon.residual, plain.residual, set, reason, hint);
  refuse_unused(
      draft, "model.canon.activation", canon.activation, plain.activation, set, reason, hint);
}

void refuse_unused_init(Draft& draft) {
  ModelConfig& model = draft.experiment.model;
  if (model.init == ModelInit::lingua) return;
  const ModelConfig plain;
  const std::string reason = "has no meaning where model.init is " + name_of(model.init);
  const char* hint = "it belongs to model.init lingua";
  const char* init = "model.init";
  refuse_unused(
      draft, "model.init_base_std", model.init_base_std, plain.init_base_std, init, reason, hint);
  refuse_unused(draft,
                "model.init_std_factor",
                model.init_std_factor,
                plain.init_std_factor,
                init,
                reason,
                hint);
}

}  // namespace

bool check_and_complete_model(Draft& draft, const ProblemSink& on_problem) {
  using Kind = Problem::Kind;
  // Arithmetic with what is missing means nothing.
  if (!attempt(on_problem, Kind::missing_key, [&] { check_required(draft); })) return false;
  attempt(on_problem, Kind::wrong_value, [&] {
    check_word(draft, "model.family", draft.experiment.model.family, {"llama_canon"});
  });
  const bool heads = attempt(on_problem, Kind::disagreement, [&] { complete_heads(draft); });
  attempt(on_problem, Kind::disagreement, [&] { refuse_unused_rotation(draft); });
  if (heads) attempt(on_problem, Kind::disagreement, [&] { check_rotation(draft); });
  attempt(on_problem, Kind::wrong_value, [&] { complete_canon_set(draft); });
  attempt(on_problem, Kind::disagreement, [&] { refuse_unused_canon(draft); });
  attempt(on_problem, Kind::disagreement, [&] { refuse_unused_init(draft); });
  return true;
}

}  // namespace forge::config
