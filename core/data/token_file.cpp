#include "core/data/token_file.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/data/token_file_format.h"

namespace forge::data {
namespace {

constexpr uint64_t max_count = uint64_t{1} << 48;
constexpr size_t checked_at_once = size_t{16} << 20;  // bytes

TokenFileHeader header_of(const MappedFile& file) {
  TokenFileHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

[[noreturn]] void refuse_file(const fs::path& path, const std::string& reason) {
  throw Error(
      "'" + shown_path(path) + "' is not a whole token file: " + reason,
      {},
      "remove it: 'forge run' and 'forge data prepare' make the files of forge's cache anew",
      ExitCode::failed);
}

}  // namespace

void seal(TokenFileHeader& header) {
  const std::string hash =
      hash_hex({reinterpret_cast<const char*>(&header), offsetof(TokenFileHeader, header_hash)});
  from_hex(hash, header.header_hash, sizeof header.header_hash);
}

std::string to_hex(const uint8_t* bytes, size_t size) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

void from_hex(const std::string& text, uint8_t* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
}

TokenFile::TokenFile(const fs::path& path) : file_(path), path_(path) {
  if (file_.size() < sizeof(TokenFileHeader)) refuse_file(path, "it ends within its header");
  const TokenFileHeader header = header_of(file_);
  if (std::memcmp(header.magic, TokenFileHeader().magic, sizeof header.magic) != 0) {
    refuse_file(path, "it does not begin with \"forgetok\"");
  }
  if (header.version != TokenFileHeader().version) {
    refuse_file(path, "its format has version " + std::to_string(header.version));
  }
  TokenFileHeader sealed = header;
  seal(sealed);
  const bool sound = std::memcmp(&sealed, &header, sizeof header) == 0 &&
                     header.count <= max_count && header.documents <= max_count &&
                     (header.bytes_per_id == 2 || header.bytes_per_id == 4);
  if (!sound) refuse_file(path, "its header is damaged");
  count_ = static_cast<int64_t>(header.count);
  documents_ = static_cast<int64_t>(header.documents);
  bytes_per_id_ = static_cast<int>(header.bytes_per_id);
  places_begin_ = header.places_begin();
  if (file_.size() != header.file_bytes()) {
    refuse_file(path,
                "it has " + std::to_string(file_.size()) + " bytes, its header says " +
                    std::to_string(header.file_bytes()));
  }
}

void TokenFile::read(int64_t first, int64_t count, int32_t* ids) const {
  if (first < 0 || count < 0 || first > count_ || count > count_ - first) {
    throw Error("'" + shown_path(path_) + "' holds " + std::to_string(count_) + " ids, not " +
                std::to_string(count) + " from id " + std::to_string(first) + " on");
  }
  const std::byte* bytes = file_.data() + sizeof(TokenFileHeader) + first * bytes_per_id_;
  if (bytes_per_id_ == 4) {
    std::memcpy(ids, bytes, static_cast<size_t>(count) * 4);
    return;
  }
  const uint16_t* narrow = reinterpret_cast<const uint16_t*>(bytes);
  for (int64_t i = 0; i < count; ++i) ids[i] = narrow[i];
}

int64_t TokenFile::place(int64_t number) const {
  if (number == documents_) return count_;
  uint64_t place = 0;
  std::memcpy(&place, file_.data() + places_begin_ + 8 * number, sizeof place);
  return static_cast<int64_t>(place);
}

TokenSpan TokenFile::document(int64_t number) const {
  if (number < 0 || number >= documents_) {
    throw Error("'" + shown_path(path_) + "' holds " + with_thousands(documents_) +
                " documents, not one of number " + std::to_string(number));
  }
  const int64_t first = place(number);
  const int64_t end = place(number + 1);
  if (first < 0 || first > end || end > count_) {
    refuse_file(path_, "document " + std::to_string(number) + " is not where its ids are");
  }
  return {first, end - first};
}

std::string TokenFile::content_hash() const {
  const TokenFileHeader header = header_of(file_);
  return to_hex(header.content_hash, sizeof header.content_hash);
}

std::string TokenFile::tokenizer_fingerprint() const {
  const TokenFileHeader header = header_of(file_);
  return to_hex(header.tokenizer_fingerprint, sizeof header.tokenizer_fingerprint);
}

void TokenFile::check_content() const {
  const TokenFileHeader header = header_of(file_);
  Hasher hasher;
  const auto add = [&](size_t begin, size_t end) {
    for (size_t at = begin; at < end; at += checked_at_once) {
      hasher.update(file_.data() + at, std::min(checked_at_once, end - at));
      forget();
    }
  };
  add(sizeof header, header.ids_end());
  add(places_begin_, file_.size());
  if (hasher.hex() != content_hash()) {
    refuse_file(path_, "its content does not have the hash in its header");
  }
}

}  // namespace forge::data
