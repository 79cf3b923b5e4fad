#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace forge {

/// Content hash: XXH3, 128 bits, written as 32 hexadecimal digits. It tells contents apart and
/// finds damage; it is no defence against somebody who wants two contents to collide.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  void update(const void* bytes, size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Two hexadecimal digits a byte.
std::string to_hex(const unsigned char* bytes, size_t size);

std::string hash_hex(std::string_view text);
/// Calls `on_bytes`, if given, with the size of each piece after hashing it.
std::string hash_file(const std::filesystem::path& path,
                      const std::function<void(int64_t)>& on_bytes = {});

}  // namespace forge
