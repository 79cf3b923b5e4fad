#include "tests/support/zip.h"

#include <archive.h>
#include <archive_entry.h>

namespace forge::tests {

std::string zipped(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string bytes(size_t{1} << 20, '\0');
  for (const auto& file : files) bytes.resize(bytes.size() + file.second.size());
  size_t used = 0;
  archive* writer = archive_write_new();
  archive_write_set_format_zip(writer);
  archive_write_open_memory(writer, bytes.data(), bytes.size(), &used);
  for (const auto& [name, content] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_size(entry, static_cast<int64_t>(content.size()));
    archive_write_header(writer, entry);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  bytes.resize(used);
  return bytes;
}

}  // namespace forge::tests
