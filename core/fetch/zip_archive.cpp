#include "core/fetch/zip_archive.h"

#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/fs.h"

namespace forge::fetch {
namespace {

// Signatures and offsets as in PKWARE's APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16.
constexpr uint32_t local_signature = 0x04034b50;
constexpr uint32_t central_signature = 0x02014b50;
constexpr uint32_t end_signature = 0x06054b50;
constexpr size_t local_bytes = 30;
constexpr size_t central_bytes = 46;
constexpr size_t end_bytes = 22;
constexpr size_t longest_comment = 0xffff;

struct Member {
  uint16_t method = 0;
  uint32_t crc = 0;
  size_t compressed = 0;
  size_t size = 0;
  size_t local_header = 0;
};

class Archive {
 public:
  explicit Archive(const fs::path& path) : path_(path), file_(path) {}

  std::optional<Member> find(const std::string& wanted) const {
    size_t place = end_record();
    size_t count = number<uint16_t>(place + 10);
    place = number<uint32_t>(place + 16);
    for (; count > 0; --count) {
      require(number<uint32_t>(place) == central_signature);
      const size_t name_bytes = number<uint16_t>(place + 28);
      const size_t others = size_t{number<uint16_t>(place + 30)} + number<uint16_t>(place + 32);
      if (std::string(bytes(place + central_bytes, name_bytes), name_bytes) == wanted) {
        return Member{number<uint16_t>(place + 10),
                      number<uint32_t>(place + 16),
                      number<uint32_t>(place + 20),
                      number<uint32_t>(place + 24),
                      number<uint32_t>(place + 42)};
      }
      place += central_bytes + name_bytes + others;
    }
    return std::nullopt;
  }

  /// The member's bytes as they lie in the archive.
  const char* content(const Member& member) const {
    const size_t place = member.local_header;
    require(number<uint32_t>(place) == local_signature);
    const size_t names = size_t{number<uint16_t>(place + 26)} + number<uint16_t>(place + 28);
    return bytes(place + local_bytes + names, member.compressed);
  }

  void require(bool sound) const {
    if (sound) return;
    throw Error("'" + shown_path(path_) + "' is not a whole zip archive",
                {},
                "remove it and get it again",
                ExitCode::failed);
  }

 private:
  const char* bytes(size_t place, size_t size) const {
    require(place <= file_.size() && size <= file_.size() - place);
    return reinterpret_cast<const char*>(file_.data()) + place;
  }
  template <class Number>
  Number number(size_t place) const {
    Number value;
    std::memcpy(&value, bytes(place, sizeof value), sizeof value);
    return value;
  }
  size_t end_record() const {
    require(file_.size() >= end_bytes);
    const size_t last = file_.size() - end_bytes;
    for (size_t back = 0; back <= std::min(last, longest_comment); ++back) {
      if (number<uint32_t>(last - back) == end_signature) return last - back;
    }
    require(false);
    return 0;
  }

  fs::path path_;
  MappedFile file_;
};

/// Inflates piece by piece and tells `take` what comes out; false where the data is damaged.
template <class Take>
bool inflate_all(const char* content, size_t size, Take take) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  std::vector<char> buffer(size_t{1} << 20);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content));
  stream.avail_in = static_cast<uInt>(size);
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    result = inflate(&stream, Z_NO_FLUSH);
    const size_t got = buffer.size() - stream.avail_out;
    take(buffer.data(), got);
    if (got == 0 && result == Z_OK) break;
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END;
}

}  // namespace

void extract(const fs::path& path, const std::string& name, const fs::path& target) {
  const Archive archive(path);
  const std::optional<Member> member = archive.find(name);
  if (!member) {
    throw Error(
        "'" + shown_path(path) + "' holds no file '" + name + "'", {}, "", ExitCode::failed);
  }
  const char* content = archive.content(*member);
  const fs::path aside = target.string() + ".tmp-" + std::to_string(::getpid());
  std::ofstream out(aside, std::ios::binary);
  uint32_t crc = 0;
  size_t size = 0;
  const auto take = [&](const char* bytes, size_t count) {
    out.write(bytes, static_cast<std::streamsize>(count));
    crc = static_cast<uint32_t>(::crc32_z(crc, reinterpret_cast<const Bytef*>(bytes), count));
    size += count;
  };
  bool sound = true;
  if (member->method == 0) {
    take(content, member->compressed);
  } else {
    sound = member->method == Z_DEFLATED && inflate_all(content, member->compressed, take);
  }
  out.close();
  const bool whole = sound && out.good() && size == member->size && crc == member->crc;
  if (!whole) {
    std::error_code ignored;
    fs::remove(aside, ignored);
  }
  archive.require(whole);
  sync_path(aside);
  rename_path(aside, target);
}

}  // namespace forge::fetch
