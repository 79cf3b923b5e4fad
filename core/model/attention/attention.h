#pragma once

#include <optional>

#include "core/base/schema.h"
#include "core/model/block.h"

/// Causal softmax attention with grouped key and value heads (Ainslie et al. 2023), rotary
/// positions (Su et al. 2021) or none, and RMSNorm of queries and keys.
namespace forge::model {

enum class PositionKind { rope, nope };
/// Which channels of a head rotate together: (i, i + r/2) or (2i, 2i + 1).
enum class RopePairing { huggingface, lingua };
/// Norm of queries and keys: over the whole projection before Canon-B, or per head after it.
enum class QkNorm { none, full, per_head };

struct PositionConfig {
  PositionKind kind = PositionKind::rope;
  double theta = 10000.0;
  std::optional<int> rope_dim;  ///< channels of each head that rotate; none: all of head_dim
  RopePairing pairing = RopePairing::huggingface;
};

struct AttentionConfig {
  int num_heads = 0;
  int num_kv_heads = 0;  ///< resolved: num_heads where the file names none
  int head_dim = 0;      ///< resolved: hidden_size / num_heads where the file names none
  QkNorm qk_norm = QkNorm::none;
  std::optional<int> window;  ///< a token sees itself and window - 1 tokens before it; none: all
  PositionConfig position;

  int64_t query_width() const { return int64_t{num_heads} * head_dim; }
  int64_t key_width() const { return int64_t{num_kv_heads} * head_dim; }
  /// Channels of queries, keys and values side by side, as Canon-B sees them.
  int64_t qkv_width() const { return query_width() + 2 * key_width(); }
  /// Channels of a head that rotate; 0 without rotary positions.
  int rotated_channels() const {
    return position.kind == PositionKind::rope ? position.rope_dim.value_or(head_dim) : 0;
  }
};

inline schema::Names names_of(PositionKind) { return {"rope", "nope"}; }
inline schema::Names names_of(RopePairing) { return {"huggingface", "lingua"}; }
inline schema::Names names_of(QkNorm) { return {"none", "full", "per_head"}; }

template <class Visitor>
void fields(Visitor& visit, PositionConfig& c) {
  visit.field("kind", c.kind, "rope: rotary position encoding; nope: none at all");
  visit.field("theta", c.theta, "base of the rotary frequencies", schema::above(0));
  visit.field("rope_dim",
              c.rope_dim,
              "channels of each head that rotate, even; null: all",
              schema::at_least(2));
  visit.field("pairing", c.pairing, "channels that rotate together: (i, i+r/2) or (2i, 2i+1)");
}

template <class Visitor>
void fields(Visitor& visit, AttentionConfig& c) {
  using namespace schema;
  visit.field("num_heads", c.num_heads, "query heads", required(up_to(1 << 12)));
  visit.field("num_kv_heads",
              c.num_kv_heads,
              "key and value heads; null: num_heads",
              or_null(up_to(1 << 12)));
  visit.field("head_dim",
              c.head_dim,
              "channels of a head; null: hidden_size / num_heads",
              or_null(up_to(1 << 14)));
  visit.field("qk_norm", c.qk_norm, "RMSNorm of queries and keys, whatever norm.kind is");
  visit.field("window",
              c.window,
              "tokens that a token sees, itself and those before it; null: all of the row",
              if_set(up_to(1 << 24)));
  visit.section("position", c.position, "position encoding");
}

extern const BlockKind attention_block;

}  // namespace forge::model
