#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace forge {

/// SHA-256, written as 64 hexadecimal digits: nobody can make two contents that have one. For what
/// a stranger would gain by it; a Hasher, which is much faster, tells contents apart.
class Sha256 {
 public:
  /// Loads OpenSSL's libcrypto. Throws Error where it is not installed.
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(const void* bytes, size_t size);
  std::string hex();  ///< once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view text);

}  // namespace forge
