#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace forge::data {

/// The first 72 bytes of a token file. All numbers are little-endian, as on every machine that
/// forge runs on. Behind them lie the ids, then, at a multiple of eight bytes, the documents'
/// places.
struct TokenFileHeader {
  char magic[8] = {'f', 'o', 'r', 'g', 'e', 't', 'o', 'k'};
  uint32_t version = 2;
  uint32_t bytes_per_id = 2;
  uint64_t count = 0;
  uint64_t documents = 0;
  uint8_t content_hash[16] = {};  ///< of ids and places
  uint8_t tokenizer_fingerprint[16] = {};
  uint8_t header_hash[8] = {};  ///< of all before it

  size_t ids_end() const { return sizeof(TokenFileHeader) + count * bytes_per_id; }
  size_t places_begin() const { return (ids_end() + 7) / 8 * 8; }
  size_t file_bytes() const { return places_begin() + 8 * documents; }
};
static_assert(sizeof(TokenFileHeader) == 72, "the header has no padding");

/// Sets header_hash.
void seal(TokenFileHeader& header);

std::string to_hex(const uint8_t* bytes, size_t size);
/// `text` has two hexadecimal digits a byte.
void from_hex(const std::string& text, uint8_t* bytes, size_t size);

}  // namespace forge::data
