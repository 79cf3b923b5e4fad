#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace forge::data {

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

  class Loan {
   public:
    explicit Loan(const PieceCaches& owner);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    PieceCache& operator*() const { return *cache_; }

   private:
    const PieceCaches& owner_;
    std::unique_ptr<PieceCache> cache_;
  };

 private:
  struct Shelf;  ///< caches that nobody uses now
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace forge::data
