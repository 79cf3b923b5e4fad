#include "core/base/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <random>

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"
#include "tests/support/zip.h"

namespace forge {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;
using tests::zipped;

TEST_CASE("an archive gives back every file with its bytes", "[archive]") {
  const TemporaryFolder folder;
  const std::string long_name = std::string(120, 'd') + "/" + std::string(90, 'f');
  std::string large(700'001, '\0');
  std::mt19937 random(7);
  for (char& c : large) c = static_cast<char>(random());
  {
    ArchiveWriter archive(folder / "a.tar.zst");
    archive.add_text("empty", "");
    archive.add_text("run/words.json", "{}");
    archive.add_text("block", std::string(512, 'x'));
    archive.add_file("large", folder.write("large", large));
    archive.add_text(long_name, "far");
    archive.finish();
  }
  REQUIRE(is_archive(folder / "a.tar.zst"));
  extract_archive(folder / "a.tar.zst", folder / "out");
  REQUIRE(read_file(folder / "out/empty").empty());
  REQUIRE(read_file(folder / "out/run/words.json") == "{}");
  REQUIRE(read_file(folder / "out/block") == std::string(512, 'x'));
  REQUIRE(read_file(folder / "out/large") == large);
  REQUIRE(read_file(folder.path() / "out" / long_name) == "far");
}

TEST_CASE("the same files give the same archive and an unfinished one leaves nothing",
          "[archive]") {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    ArchiveWriter archive(folder / name);
    archive.add_text("x", "1");
    archive.finish();
  }
  REQUIRE(read_file(folder / "a") == read_file(folder / "b"));
  { ArchiveWriter(folder / "c").add_text("x", "1"); }
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder.path())) files += entry.exists();
  REQUIRE(files == 2);
}

TEST_CASE("a name that leads out of the folder is refused", "[archive]") {
  for (const std::string name :
       {"../x", "/etc/passwd", "a/../../x", "a//b", "./x", "", "a\\b", "a\nb"})
    REQUIRE(contains(error_of([&] { require_inner_path(name); }), "no path within a folder"));
  REQUIRE(error_of([] { require_inner_path("run/checkpoints/000000001/weights.safetensors"); }) ==
          "");
  const TemporaryFolder folder;
  ArchiveWriter archive(folder / "a");
  REQUIRE(contains(error_of([&] { archive.add_text("../x", ""); }), "no path"));
}

/// One entry as a stranger may write it.
struct Entry {
  std::string name = {};
  mode_t type = AE_IFREG;
  std::string symlink = {};
  std::string hardlink = {};
};

fs::path tar_of(const fs::path& file, const std::vector<Entry>& entries) {
  archive* writer = archive_write_new();
  archive_write_add_filter_zstd(writer);
  archive_write_set_format_pax(writer);
  REQUIRE(archive_write_open_filename(writer, file.c_str()) == ARCHIVE_OK);
  for (const Entry& made : entries) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, made.name.c_str());
    archive_entry_set_filetype(entry, made.type);
    archive_entry_set_perm(entry, 0644);
    if (!made.symlink.empty()) archive_entry_set_symlink(entry, made.symlink.c_str());
    if (!made.hardlink.empty()) archive_entry_set_hardlink(entry, made.hardlink.c_str());
    archive_entry_set_size(entry, made.type == AE_IFREG && made.hardlink.empty() ? 3 : 0);
    REQUIRE(archive_write_header(writer, entry) == ARCHIVE_OK);
    archive_write_data(writer, "abc", 3);
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  return file;
}

TEST_CASE("a hostile archive writes nothing outside its folder", "[archive]") {
  const TemporaryFolder folder;
  const fs::path victim = folder.write("victim", "safe");
  const auto error = [&](const std::vector<Entry>& entries) {
    const fs::path out = folder / "out";
    fs::remove_all(out);
    make_directories(out);
    return error_of([&] { extract_archive(tar_of(folder / "bad", entries), out); });
  };
  REQUIRE(error({{"a"}, {"folder/", AE_IFDIR}, {"folder/b"}}) == "");
  REQUIRE(contains(error({{"../victim"}}), "no path within a folder"));
  REQUIRE(contains(error({{victim.string()}}), "no path within a folder"));
  REQUIRE(contains(error({{"a/../../victim"}}), "no path within a folder"));
  REQUIRE(contains(error({{"l", AE_IFLNK, victim.string()}, {"l"}}), "no plain file"));
  REQUIRE(contains(error({{"l", AE_IFLNK, ".."}, {"l/victim"}}), "no plain file"));
  REQUIRE(contains(error({{"l", AE_IFREG, "", victim.string()}}), "no plain file"));
  REQUIRE(contains(error({{"pipe", AE_IFIFO}}), "no plain file"));
  REQUIRE(contains(error({{"a"}, {"a"}}), "twice"));
  REQUIRE(read_file(victim) == "safe");
}

TEST_CASE("names that are long or no ASCII are kept", "[archive]") {
  const TemporaryFolder folder;
  const std::string name = "templates/\xc3\xa4/" + std::string(200, 'n');
  {
    ArchiveWriter writer(folder / "a");
    writer.add_text(name, "x");
    writer.finish();
  }
  extract_archive(folder / "a", folder / "out");
  REQUIRE(read_file(folder / "out" / name) == "x");
}

TEST_CASE("a damaged or shortened archive is refused and never crashes", "[archive]") {
  const TemporaryFolder folder;
  {
    ArchiveWriter archive(folder / "a");
    for (int i = 0; i < 20; ++i)
      archive.add_text("f" + std::to_string(i), std::string(size_t(i) * 37, char('a' + i)));
    archive.finish();
  }
  const std::string good = read_file(folder / "a");
  std::mt19937 random(11);
  INFO("seed 11");
  for (int i = 0; i < 150; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    if (i % 3 == 0) bad.resize(random() % bad.size());
    const fs::path out = folder / ("out" + std::to_string(i));
    make_directories(out);
    const std::string message = error_of([&] { extract_archive(folder.write("bad", bad), out); });
    REQUIRE(contains(message, "cannot be unpacked"));
  }
}

TEST_CASE("an archive larger than the limits or with a file twice is refused",
          "[archive][hostile]") {
  const TemporaryFolder folder;
  {
    ArchiveWriter archive(folder / "a");
    archive.add_text("x", std::string(1000, 'x'));
    archive.add_text("x", "again");
    archive.finish();
  }
  REQUIRE(contains(error_of([&] {
                     extract_archive(folder / "a", folder / "1", {1, 1 << 20});
                   }),
                   "more than 1 files"));
  REQUIRE_FALSE(fs::exists(folder / "1"));  // refused before anything is written
  REQUIRE(contains(error_of([&] {
                     extract_archive(folder / "a", folder / "2", {9, 999});
                   }),
                   "more than 9 files or 999 B"));
  REQUIRE(contains(error_of([&] { extract_archive(folder / "a", folder / "3"); }), "twice"));
}

/// So many zeros, compressed with zstd.
std::string compressed_zeros(int64_t bytes) {
  std::string out(size_t{1} << 20, '\0');
  size_t used = 0;
  archive* writer = archive_write_new();
  archive_write_set_format_raw(writer);
  archive_write_add_filter_zstd(writer);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_pathname(entry, "zeros");
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  const std::string piece(size_t{1} << 20, '\0');
  for (int64_t written = 0; written < bytes; written += int64_t(piece.size()))
    archive_write_data(writer, piece.data(), piece.size());
  archive_write_close(writer);
  archive_entry_free(entry);
  archive_write_free(writer);
  return out.substr(0, used);
}

TEST_CASE("an archive that goes on far behind its last file is refused, and can be interrupted",
          "[archive][hostile]") {
  const TemporaryFolder folder;
  {
    ArchiveWriter archive(folder / "a");
    archive.add_text("x", "text");
    archive.finish();
  }
  const std::string whole = read_file(folder / "a");
  extract_archive(folder.write("little", whole + compressed_zeros(1 << 20)), folder / "1");
  REQUIRE(read_file(folder / "1" / "x") == "text");
  const fs::path much = folder.write("much", whole + compressed_zeros(int64_t{4} << 30));
  REQUIRE(fs::file_size(much) < 1 << 20);
  REQUIRE(contains(error_of([&] { extract_archive(much, folder / "2"); }),
                   "much goes on behind its last file"));
  REQUIRE_FALSE(fs::exists(folder / "2" / "x"));
  ExtractLimits limits;
  int asked = 0;
  limits.on_bytes = [&](int64_t) {
    if (++asked == 3) throw Error("interrupted");
  };
  REQUIRE(contains(error_of([&] { extract_archive(much, folder / "3", limits); }), "interrupted"));
}

TEST_CASE("a file of a zip archive is written whole", "[archive]") {
  TemporaryFolder folder;
  std::string large;
  while (large.size() < 3000000) large += "line " + std::to_string(large.size()) + "\n";
  const auto archive =
      folder.write("a.zip", zipped({{"in/a.txt", large}, {"in/b.txt", ""}, {"c", "sea"}}));
  extract_zip_member(archive, "in/a.txt", folder / "a.txt");
  extract_zip_member(archive, "in/b.txt", folder / "b.txt");
  extract_zip_member(archive, "c", folder / "c.txt");
  REQUIRE(read_file(folder / "a.txt") == large);
  REQUIRE(read_file(folder / "b.txt") == "");
  REQUIRE(read_file(folder / "c.txt") == "sea");
  REQUIRE(contains(error_of([&] { extract_zip_member(archive, "d", folder / "d"); }),
                   "holds no file 'd'"));
}

TEST_CASE("a damaged archive is refused wherever the damage is", "[archive]") {
  TemporaryFolder folder;
  const std::string whole = zipped({{"a.txt", "some text some text some text"}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto archive = folder.write("cut.zip", whole.substr(0, size));
    REQUIRE(error_of([&] { extract_zip_member(archive, "a.txt", folder / "a.txt"); }) != "");
    REQUIRE_FALSE(fs::exists(folder / "a.txt"));
  }
  std::string changed = whole;
  changed[30 + 5 + 3] = static_cast<char>(changed[30 + 5 + 3] ^ 1);  // within the content
  const auto archive = folder.write("changed.zip", changed);
  REQUIRE(contains(error_of([&] { extract_zip_member(archive, "a.txt", folder / "a.txt"); }),
                   "is not a whole zip archive"));
}

TEST_CASE("a link is not packed, and the message says what to do", "[archive]") {
  const TemporaryFolder folder;
  folder.write("real", "text");
  fs::create_symlink(folder / "real", folder / "link");
  ArchiveWriter archive(folder / "a");
  CHECK(
      contains(error_of([&] { archive.add_file("x", folder / "link"); }),
               "it is a link, which may lead anywhere\nhint: put a copy of the file in its place"));
}

}  // namespace
}  // namespace forge
