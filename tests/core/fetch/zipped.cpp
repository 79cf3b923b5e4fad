#include "tests/core/fetch/zipped.h"

#include <zlib.h>

#include <cstdint>

namespace forge::tests {
namespace {

std::string deflated(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

void add(std::string& to, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i, number >>= 8) to += static_cast<char>(number & 0xff);
}

}  // namespace

std::string zipped(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string archive;
  std::string directory;
  for (const auto& [name, content] : files) {
    const std::string packed = deflated(content);
    std::string shared;  // what both headers say of the file
    add(shared, 20, 2);
    add(shared, 0, 2);
    add(shared, Z_DEFLATED, 2);
    add(shared, 0, 4);
    add(shared, ::crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()), 4);
    add(shared, packed.size(), 4);
    add(shared, content.size(), 4);
    add(shared, name.size(), 2);
    add(shared, 0, 2);
    add(directory, 0x02014b50, 4);
    add(directory, 20, 2);
    directory += shared;
    add(directory, 0, 2 + 2 + 2 + 4);
    add(directory, archive.size(), 4);
    directory += name;
    add(archive, 0x04034b50, 4);
    archive += shared + name + packed;
  }
  const size_t place = archive.size();
  archive += directory;
  add(archive, 0x06054b50, 4);
  add(archive, 0, 4);
  add(archive, files.size(), 2);
  add(archive, files.size(), 2);
  add(archive, directory.size(), 4);
  add(archive, place, 4);
  add(archive, 0, 2);
  return archive;
}

}  // namespace forge::tests
