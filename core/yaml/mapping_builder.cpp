#include "core/yaml/mapping_builder.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/templating/plain_scalar.h"

namespace forge::yaml {
namespace {

/// A history longer than this tells nobody anything, and merges of merges could double it forever.
constexpr size_t max_history = 64;

constexpr int64_t max_exact_integer = int64_t{1} << 53;  ///< that a double holds exactly

/// What makes a key the same as another: 1, 1.0 and yes are one key, as in Python's dicts.
std::string identity_of(const Entry& entry) {
  using templating::PlainScalar;
  if (entry.key_is_string) return "s" + entry.key;
  const PlainScalar scalar = templating::resolve_plain_scalar(entry.key);
  switch (scalar.kind) {
    case PlainScalar::Kind::null: return "null";
    case PlainScalar::Kind::boolean: return scalar.boolean ? "n1.0" : "n0.0";
    case PlainScalar::Kind::integer:
      if (scalar.overflow) return "n" + entry.key;
      if (scalar.integer > max_exact_integer || scalar.integer < -max_exact_integer)
        return "n" + std::to_string(scalar.integer);
      return "n" + shortest(static_cast<double>(scalar.integer));
    case PlainScalar::Kind::real: return "n" + shortest(scalar.real == 0 ? 0.0 : scalar.real);
    default: return "p" + entry.key;
  }
}

}  // namespace

void MappingBuilder::merge_mapping(const Node& mapping) {
  if (!mapping.is_mapping()) {
    throw Error("'<<' merges mappings, but this is " + describe_kind(mapping), mapping.origin);
  }
  merged_.insert(merged_.end(), mapping.entries.begin(), mapping.entries.end());
}

void MappingBuilder::merge(const Node& value) {
  if (!value.is_sequence()) return merge_mapping(value);
  // Of several mappings the first wins, so it comes last.
  for (auto item = value.items.rbegin(); item != value.items.rend(); ++item) merge_mapping(**item);
}

void MappingBuilder::put(Entry entry, bool is_own) {
  const auto [found, is_new] = index_.emplace(identity_of(entry), entries_.size());
  if (is_new) {
    entries_.push_back(std::move(entry));
    owned_.push_back(is_own);
    return;
  }
  Entry& replaced = entries_[found->second];
  entry.repeats = owned_[found->second] ? replaced.repeats + 1 : 0;
  owned_[found->second] = is_own;
  std::vector<NodePtr> history = std::move(entry.overridden);
  history.push_back(replaced.value);
  history.insert(history.end(), replaced.overridden.begin(), replaced.overridden.end());
  if (history.size() > max_history) history.resize(max_history);
  entry.overridden = std::move(history);
  replaced = std::move(entry);
}

std::vector<Entry> MappingBuilder::finish() {
  for (Entry& entry : merged_) {
    entry.repeats = 0;
    put(std::move(entry), false);
  }
  for (Entry& entry : own_) put(std::move(entry), true);
  return std::move(entries_);
}

}  // namespace forge::yaml
