#include "core/data/piece_cache.h"

#include <algorithm>
#include <cstring>
#include <mutex>

namespace forge::data {
namespace {

constexpr int slot_bits = 15;  // 2 MiB, what a core has near it
constexpr size_t longest_piece = 15;

}  // namespace

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

struct PieceCaches::Shelf {
  std::mutex mutex;
  std::vector<std::unique_ptr<PieceCache>> caches;
};

PieceCaches::PieceCaches() : shelf_(std::make_shared<Shelf>()) {}

PieceCaches::Loan::Loan(const PieceCaches& owner) : owner_(owner) {
  const std::lock_guard<std::mutex> lock(owner_.shelf_->mutex);
  if (owner_.shelf_->caches.empty()) {
    cache_ = std::make_unique<PieceCache>();
  } else {
    cache_ = std::move(owner_.shelf_->caches.back());
    owner_.shelf_->caches.pop_back();
  }
}

PieceCaches::Loan::~Loan() {
  const std::lock_guard<std::mutex> lock(owner_.shelf_->mutex);
  owner_.shelf_->caches.push_back(std::move(cache_));
}

}  // namespace forge::data
