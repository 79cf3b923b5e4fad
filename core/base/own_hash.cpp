#include "core/base/own_hash.h"

#include "core/base/hash.h"

namespace forge {
namespace {

constexpr size_t digits = 32;

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

std::string own_hash_mark() { return std::string(own_hash_name) + std::string(digits, '0'); }

std::string with_own_hash(std::string text) {
  replace_all(text, own_hash_mark(), std::string(own_hash_name) + hash_hex(text));
  return text;
}

bool has_own_hash(std::string text) {
  const size_t name = text.rfind(own_hash_name);
  if (name == std::string::npos) return false;
  const std::string hash = text.substr(name + own_hash_name.size(), digits);
  replace_all(text, std::string(own_hash_name) + hash, own_hash_mark());
  return hash_hex(text) == hash;
}

}  // namespace forge
