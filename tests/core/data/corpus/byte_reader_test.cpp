#include "core/data/corpus/byte_reader.h"

#include "tests/core/data/corpus/compressed.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

std::string text_of_lines() {
  std::string text;
  for (int i = 0; i < 60000; ++i) text += "line " + std::to_string(i) + "\n";
  return text;
}

/// All that a reader gives, read in odd sizes.
std::string all_of(ByteReader& reader) {
  std::string all;
  std::string buffer(7919, '\0');
  while (const size_t got = reader.read(buffer.data(), buffer.size())) all.append(buffer, 0, got);
  return all;
}

TEST_CASE("a compressed file reads as what was compressed, from any place") {
  tests::TemporaryFolder folder;
  const std::string text = text_of_lines();
  const std::vector<std::filesystem::path> files = {folder.write("a.txt", text),
                                                    folder.write("a.gz", tests::gzipped(text)),
                                                    folder.write("a.zst", tests::zstandard(text))};
  for (const auto& path : files) {
    INFO(path.string());
    REQUIRE(size_of_content(path) == static_cast<int64_t>(text.size()));
    REQUIRE(all_of(*open_bytes(path)) == text);
    REQUIRE(all_of(*open_bytes(path, 500001)) == text.substr(500001));
    REQUIRE(all_of(*open_bytes(path, static_cast<int64_t>(text.size()))) == "");
  }
}

TEST_CASE("parts that were compressed one by one read as one text") {
  tests::TemporaryFolder folder;
  const auto gz = folder.write("a.gz", tests::gzipped("one ") + tests::gzipped("two"));
  const auto zst = folder.write("a.zst", tests::zstandard("one ") + tests::zstandard("two"));
  REQUIRE(all_of(*open_bytes(gz)) == "one two");
  REQUIRE(all_of(*open_bytes(zst)) == "one two");
  REQUIRE(all_of(*open_bytes(folder.write("empty.zst", ""))) == "");
  REQUIRE(all_of(*open_bytes(folder.write("empty.gz", ""))) == "");
}

TEST_CASE("a compressed file that is cut short or is none is refused") {
  tests::TemporaryFolder folder;
  const std::string text = text_of_lines();
  const auto error = [&](const std::string& name, const std::string& content) {
    const auto path = folder.write(name, content);
    return tests::error_of([&] { size_of_content(path); });
  };
  using tests::contains;
  const std::string gz = tests::gzipped(text);
  const std::string zst = tests::zstandard(text);
  REQUIRE(contains(error("cut.gz", gz.substr(0, gz.size() - 20)), "it ends too early"));
  REQUIRE(contains(error("cut.zst", zst.substr(0, zst.size() - 20)), "it ends too early"));
  REQUIRE(contains(error("text.gz", text), "it is not in gzip's format"));
  REQUIRE(contains(error("text.zst", text), "cannot be decompressed"));
  std::string damaged = gz;
  damaged[gz.size() / 2] = static_cast<char>(damaged[gz.size() / 2] ^ 0x55);
  REQUIRE(contains(error("damaged.gz", damaged), "cannot be decompressed"));
}

}  // namespace
}  // namespace forge::data
