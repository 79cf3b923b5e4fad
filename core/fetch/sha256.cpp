#include "core/fetch/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/data/corpus/byte_reader.h"
#include "core/fetch/shared_library.h"

namespace forge::fetch {
namespace {

struct Crypto {
  Crypto() : library("libcrypto.so.3", "libssl3") {
    library.load("EVP_MD_CTX_new", create);
    library.load("EVP_MD_CTX_free", destroy);
    library.load("EVP_sha256", algorithm);
    library.load("EVP_DigestInit_ex", init);
    library.load("EVP_DigestUpdate", update);
    library.load("EVP_DigestFinal_ex", finish);
  }
  SharedLibrary library;
  decltype(EVP_MD_CTX_new)* create;
  decltype(EVP_MD_CTX_free)* destroy;
  decltype(EVP_sha256)* algorithm;
  decltype(EVP_DigestInit_ex)* init;
  decltype(EVP_DigestUpdate)* update;
  decltype(EVP_DigestFinal_ex)* finish;
};

}  // namespace

std::string sha256_of(const std::filesystem::path& path, const data::Progress& progress) {
  static const Crypto crypto;
  const std::unique_ptr<EVP_MD_CTX, decltype(EVP_MD_CTX_free)*> context(crypto.create(),
                                                                        crypto.destroy);
  crypto.init(context.get(), crypto.algorithm(), nullptr);
  const auto total = static_cast<double>(std::max<uintmax_t>(1, std::filesystem::file_size(path)));
  const auto reader = data::open_raw_bytes(path);
  std::vector<char> buffer(size_t{1} << 20);
  double done = 0;
  while (const size_t got = reader->read(buffer.data(), buffer.size())) {
    crypto.update(context.get(), buffer.data(), got);
    done += static_cast<double>(got);
    if (progress) progress(done / total, "checking");
  }
  std::array<unsigned char, 32> digest{};
  crypto.finish(context.get(), digest.data(), nullptr);
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace forge::fetch
