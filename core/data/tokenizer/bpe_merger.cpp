#include "core/data/tokenizer/bpe_merger.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace forge::data {
namespace {

constexpr uint32_t no_rank = 0xffffffff;
constexpr uint64_t no_pair = ~uint64_t{0};  // ids are not negative
constexpr size_t short_limit = 48;          // words; a search of the ranks beats a heap up to here

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

constexpr int slot_bits = 15;  // 2 MiB, what a core has near it
constexpr size_t longest_piece = 15;

}  // namespace

BpeMerger::BpeMerger(const std::vector<Merge>& merges, bool ranked_by_token) {
  int bits = 4;
  while ((size_t{1} << bits) < 2 * merges.size()) ++bits;
  shift_ = 64 - bits;
  entries_.assign(size_t{1} << bits, Entry{no_pair, no_rank, 0});
  std::unordered_map<int32_t, uint32_t> rank_of_token;
  for (uint32_t place = 0; place < merges.size(); ++place) {
    const Merge& merge = merges[place];
    const uint64_t pair = pair_key(merge.left, merge.right);
    Entry& entry = entries_[slot_of(pair)];
    if (entry.pair == pair) continue;  // a later merge of the same pair is never reached
    const uint32_t rank =
        ranked_by_token ? rank_of_token.emplace(merge.merged, place).first->second : place;
    entry = {pair, rank, merge.merged};
  }
}

size_t BpeMerger::slot_of(uint64_t pair) const {
  const size_t mask = entries_.size() - 1;
  size_t slot = (pair * 0x9e3779b97f4a7c15) >> shift_;
  while (entries_[slot].pair != pair && entries_[slot].pair != no_pair) slot = (slot + 1) & mask;
  return slot;
}

const BpeMerger::Entry& BpeMerger::find(int32_t left, int32_t right) const {
  return entries_[slot_of(pair_key(left, right))];
}

void BpeMerger::apply(std::vector<int32_t>& ids, size_t begin) const {
  const size_t count = ids.size() - begin;
  if (count < 2) return;
  if (count <= short_limit) {
    merge_short(ids, begin);
  } else {
    merge_long(ids, begin);
  }
}

void BpeMerger::merge_short(std::vector<int32_t>& ids, size_t begin) const {
  int32_t* symbols = ids.data() + begin;
  size_t count = ids.size() - begin;
  std::array<uint32_t, short_limit> ranks;  // of the pair (i, i + 1)
  std::array<int32_t, short_limit> merged;
  const auto look_up = [&](size_t i) {
    const Entry& entry = find(symbols[i], symbols[i + 1]);
    ranks[i] = entry.rank;
    merged[i] = entry.merged;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == no_rank) break;
    symbols[best] = merged[best];
    --count;
    for (size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (size_t i = best + 1; i + 1 < count; ++i) {
      ranks[i] = ranks[i + 1];
      merged[i] = merged[i + 1];
    }
    if (best > 0) look_up(best - 1);
    if (best + 1 < count) look_up(best);
  }
  ids.resize(begin + count);
}

void BpeMerger::merge_long(std::vector<int32_t>& ids, size_t begin) const {
  // A linked list of symbols and a heap of candidate merges; candidates whose symbols have changed
  // since are dropped when they surface. O(n log n), so a megabyte without a space is no attack.
  constexpr uint32_t none = 0xffffffff;
  struct Symbol {
    int32_t id;
    uint32_t previous, next;
  };
  using Candidate = std::tuple<uint32_t, uint32_t, uint64_t>;  // rank, position, pair
  const uint32_t count = static_cast<uint32_t>(ids.size() - begin);
  std::vector<Symbol> symbols(count);
  for (uint32_t i = 0; i < count; ++i) {
    symbols[i] = {ids[begin + i], i == 0 ? none : i - 1, i + 1 == count ? none : i + 1};
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap;
  const auto propose = [&](uint32_t i) {
    if (i == none || symbols[i].next == none) return;
    const Entry& entry = find(symbols[i].id, symbols[symbols[i].next].id);
    if (entry.rank != no_rank) heap.emplace(entry.rank, i, entry.pair);
  };
  for (uint32_t i = 0; i < count; ++i) propose(i);
  while (!heap.empty()) {
    const auto [rank, left, pair] = heap.top();
    heap.pop();
    const uint32_t right = symbols[left].next;
    // A symbol that was merged away has id -1, which is in no pair.
    if (right == none || pair_key(symbols[left].id, symbols[right].id) != pair) continue;
    symbols[left].id = find(symbols[left].id, symbols[right].id).merged;
    symbols[left].next = symbols[right].next;
    if (symbols[right].next != none) symbols[symbols[right].next].previous = left;
    symbols[right].id = -1;
    propose(symbols[left].previous);
    propose(left);
  }
  size_t end = begin;
  for (uint32_t i = 0; i != none; i = symbols[i].next) ids[end++] = symbols[i].id;
  ids.resize(end);
}

PieceCache::PieceCache() : entries_(size_t{1} << slot_bits) {}

PieceCache::Key PieceCache::key_of(std::string_view piece) {
  Key key{};
  std::memcpy(key.data(), piece.data(), piece.size());
  reinterpret_cast<unsigned char*>(key.data())[longest_piece] =
      static_cast<unsigned char>(piece.size());
  return key;
}

size_t PieceCache::slot_of(const Key& key) {
  const uint64_t mixed = (key[0] ^ (key[1] * 0x9e3779b97f4a7c15)) * 0xd6e8feb86659fd93;
  return (mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15 >> (64 - slot_bits);
}

bool PieceCache::append(std::string_view piece, std::vector<int32_t>& ids) const {
  if (piece.size() > longest_piece) return false;
  const Key key = key_of(piece);
  const Entry& entry = entries_[slot_of(key)];
  if (entry.key != key) return false;
  ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
  return true;
}

void PieceCache::remember(std::string_view piece, const std::vector<int32_t>& ids, size_t begin) {
  const size_t count = ids.size() - begin;
  if (piece.size() > longest_piece || count > Entry().ids.size()) return;
  const Key key = key_of(piece);
  Entry& entry = entries_[slot_of(key)];
  entry.key = key;
  entry.count = static_cast<uint32_t>(count);
  std::copy(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end(), entry.ids.begin());
}

struct PieceCaches::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<PieceCache>> caches;
};

PieceCaches::PieceCaches() : pool_(std::make_shared<Pool>()) {}

PieceCaches::Lease::Lease(const PieceCaches& owner) : owner_(owner) {
  const std::lock_guard<std::mutex> lock(owner_.pool_->mutex);
  if (owner_.pool_->caches.empty()) {
    cache_ = std::make_unique<PieceCache>();
  } else {
    cache_ = std::move(owner_.pool_->caches.back());
    owner_.pool_->caches.pop_back();
  }
}

PieceCaches::Lease::~Lease() {
  const std::lock_guard<std::mutex> lock(owner_.pool_->mutex);
  owner_.pool_->caches.push_back(std::move(cache_));
}

}  // namespace forge::data
