#pragma once

#include <cstdint>
#include <vector>

#include "core/data/vocabulary.h"

namespace forge::data {

/// Applies the merges of a vocabulary to one piece of text: as long as two neighbours can merge,
/// those of the earliest merge do, from the left. Immutable, so any number of threads may share
/// one.
class BpeMerger {
 public:
  BpeMerger() = default;
  /// With `ranked_by_token`, merges that make the same token have the rank of the first of them.
  explicit BpeMerger(const std::vector<Merge>& merges, bool ranked_by_token = false);

  /// Merges the ids from index `begin` to the end in place; the vector gets shorter.
  void apply(std::vector<int32_t>& ids, size_t begin) const;

 private:
  struct Entry {
    uint64_t pair;
    uint32_t rank;
    int32_t merged;
  };
  /// Index of the entry of a pair, or of the empty one where it would be.
  size_t slot_of(uint64_t pair) const;
  const Entry& find(int32_t left, int32_t right) const;
  void merge_short(std::vector<int32_t>& ids, size_t begin) const;
  void merge_long(std::vector<int32_t>& ids, size_t begin) const;

  std::vector<Entry> entries_;  ///< open addressing; a power of two, at most half full
  int shift_ = 0;               ///< 64 - log2 of the number of entries
};

}  // namespace forge::data
