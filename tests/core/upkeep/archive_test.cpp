#include "core/upkeep/archive.h"

#include <random>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::upkeep {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

TEST_CASE("an archive gives back every file with its bytes", "[upkeep][archive]") {
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
          "[upkeep][archive]") {
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

TEST_CASE("a name that leads out of the folder is refused", "[upkeep][archive]") {
  for (const std::string name :
       {"../x", "/etc/passwd", "a/../../x", "a//b", "./x", "", "a\\b", "a\nb"})
    REQUIRE(contains(error_of([&] { require_inner_path(name); }), "no path within a folder"));
  REQUIRE(error_of([] { require_inner_path("run/checkpoints/000000001/weights.safetensors"); }) ==
          "");
  const TemporaryFolder folder;
  ArchiveWriter archive(folder / "a");
  REQUIRE(contains(error_of([&] { archive.add_text("../x", ""); }), "no path"));
}

TEST_CASE("a damaged or shortened archive is refused and never crashes", "[upkeep][archive]") {
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
          "[upkeep][archive]") {
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
  REQUIRE(contains(error_of([&] {
                     extract_archive(folder / "a", folder / "2", {9, 999});
                   }),
                   "more than 9 files or 999 B"));
  REQUIRE(contains(error_of([&] { extract_archive(folder / "a", folder / "3"); }), "twice"));
}

}  // namespace
}  // namespace forge::upkeep
