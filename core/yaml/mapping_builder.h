#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/yaml/node.h"

namespace forge::yaml {

/// Collects the entries of one mapping with PyYAML's rules: a repeated key keeps its first place
/// and takes the last value; merged entries come before the mapping's own and yield to them.
class MappingBuilder {
 public:
  void add(Entry entry) { own_.push_back(std::move(entry)); }
  /// The value of a `<<` key: a mapping or a sequence of mappings. Throws Error for others.
  void merge(const Node& value);
  size_t merged_count() const { return merged_.size(); }
  std::vector<Entry> finish();

 private:
  void merge_mapping(const Node& mapping);
  void put(Entry entry, bool is_own);

  std::vector<Entry> merged_, own_, entries_;
  std::vector<bool> owned_;  ///< of entries_: whether the value is of the mapping itself
  std::unordered_map<std::string, size_t> index_;  ///< into entries_
};

}  // namespace forge::yaml
