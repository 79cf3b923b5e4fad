#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/data/tokenizer/vocabulary.h"

namespace forge::data {

/// Applies the merges of a vocabulary to one piece of text: as long as two neighbours can merge,
/// those of the earliest merge do, from the left. Immutable, so any number of threads may share
/// one.
class BpeMerger {
 public:
  /// With `ranked_by_token`, merges that make the same token have the rank of the first of them.
  BpeMerger(const std::vector<Merge>& merges, bool ranked_by_token);

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

/// The ids of short pieces that were seen lately: a few thousand words make up most of any text.
/// A fixed number of places, each for the last piece that belongs there. For one thread at a time.
class PieceCache {
 public:
  PieceCache();

  /// Appends the ids of a piece; false, and nothing appended, where they are not known.
  bool append(std::string_view piece, std::vector<int32_t>& ids) const;

  /// Remembers that the last of `ids`, from index `begin` on, are those of a piece. Pieces and
  /// lists that are too long are not worth a place.
  void remember(std::string_view piece, const std::vector<int32_t>& ids, size_t begin);

 private:
  using Key = std::array<uint64_t, 2>;  ///< the bytes of the piece and, in the last one, its length
  struct Entry {                        // a cache line
    Key key{};
    uint32_t count = 0;
    std::array<int32_t, 11> ids{};
  };
  static Key key_of(std::string_view piece);
  static size_t slot_of(const Key& key);

  std::vector<Entry> entries_;
};

/// Caches for any number of threads: each borrows one for as long as it needs it, so that nobody
/// waits and what one text taught serves the next. Copies share their caches.
class PieceCaches {
 public:
  PieceCaches();

  class Lease {
   public:
    explicit Lease(const PieceCaches& owner);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    PieceCache* operator->() const { return cache_.get(); }

   private:
    const PieceCaches& owner_;
    std::unique_ptr<PieceCache> cache_;
  };

 private:
  struct Pool;  ///< caches that nobody uses now
  std::shared_ptr<Pool> pool_;
};

}  // namespace forge::data
