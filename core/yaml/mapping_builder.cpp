#include "core/yaml/mapping_builder.h"

#include <algorithm>

#include "core/base/error.h"

namespace forge::yaml {
namespace {

/// A history longer than this tells nobody anything, and merges of merges could double it forever.
constexpr size_t max_history = 64;

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
  const std::string identity = (entry.key_is_string ? "s" : "p") + entry.key;
  const auto [found, is_new] = index_.emplace(identity, entries_.size());
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
