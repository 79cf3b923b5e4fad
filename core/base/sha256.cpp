#include "core/base/sha256.h"

#include <array>

#include <openssl/evp.h>

#include "core/base/hash.h"
#include "core/base/shared_library.h"

namespace forge {
namespace {

struct Crypto {
  SharedLibrary library{"libcrypto.so.3", "libssl3"};
  decltype(EVP_MD_CTX_new)* create = library.find("EVP_MD_CTX_new");
  decltype(EVP_MD_CTX_free)* destroy = library.find("EVP_MD_CTX_free");
  decltype(EVP_sha256)* algorithm = library.find("EVP_sha256");
  decltype(EVP_DigestInit_ex)* init = library.find("EVP_DigestInit_ex");
  decltype(EVP_DigestUpdate)* update = library.find("EVP_DigestUpdate");
  decltype(EVP_DigestFinal_ex)* finish = library.find("EVP_DigestFinal_ex");
};

const Crypto& crypto() {
  static const Crypto loaded;
  return loaded;
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = crypto().create();
  ~State() { crypto().destroy(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  crypto().init(state_->context, crypto().algorithm(), nullptr);
}
Sha256::~Sha256() = default;

void Sha256::update(const void* bytes, size_t size) {
  crypto().update(state_->context, bytes, size);
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  crypto().finish(state_->context, digest.data(), nullptr);
  return to_hex(digest.data(), digest.size());
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.hex();
}

}  // namespace forge
