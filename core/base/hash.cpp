#include "core/base/hash.h"

#include <xxhash.h>

#include "core/base/files.h"

namespace forge {

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh); }
Hasher::~Hasher() = default;

void Hasher::update(const void* bytes, size_t size) {
  if (size > 0) XXH3_128bits_update(state_->xxh, bytes, size);
}

std::string Hasher::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_->xxh));
  return to_hex(canonical.digest, sizeof canonical.digest);
}

std::string to_hex(const unsigned char* bytes, size_t size) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

std::string hash_hex(std::string_view text) {
  Hasher hasher;
  hasher.update(text);
  return hasher.hex();
}

std::string hash_file(const std::filesystem::path& path,
                      const std::function<void(int64_t)>& on_bytes) {
  constexpr size_t piece_bytes = size_t{16} << 20;
  const MappedFile file(path);
  Hasher hasher;
  for (size_t begin = 0; begin < file.size(); begin += piece_bytes) {
    const size_t here = std::min(piece_bytes, file.size() - begin);
    hasher.update(file.data() + begin, here);
    file.forget();  // a large file is read again by the next who needs it, and fills no memory
    if (on_bytes) on_bytes(static_cast<int64_t>(here));
  }
  return hasher.hex();
}

}  // namespace forge
