#include "core/data/corpus/text_files.h"
#include "core/data/corpus/byte_reader.h"
#include "tests/core/data/corpus/text_samples.h"
#include "tests/support/catch.h"
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

TEST_CASE("nothing that follows a compressed part is passed over") {
  tests::TemporaryFolder folder;
  const auto error = [&](const std::string& name, const std::string& content) {
    const auto path = folder.write(name, content);
    return tests::error_of([&] { all_of(*open_bytes(path)); });
  };
  using tests::contains;
  const std::string one = tests::gzipped("one "), two = tests::gzipped("two");
  const std::string place =
      "what follows its byte " + std::to_string(one.size()) + " is not in gzip's format";
  REQUIRE(contains(error("garbage.gz", one + "garbage\n"), place));
  std::string no_header = two;
  no_header[0] = static_cast<char>(no_header[0] ^ 1);
  REQUIRE(contains(error("header.gz", one + no_header), place));
  std::string other_method = two;
  other_method[2] = 7;
  REQUIRE(contains(error("method.gz", one + other_method), "cannot be decompressed"));
  std::string other_sum = two;
  other_sum[two.size() - 6] = static_cast<char>(other_sum[two.size() - 6] ^ 1);
  REQUIRE(contains(error("sum.gz", one + other_sum), "cannot be decompressed"));
  for (size_t size = 1; size < two.size(); ++size) {
    INFO(size);
    REQUIRE(contains(error("cut.gz", one + two.substr(0, size)), "it ends too early"));
  }
  REQUIRE(contains(error("garbage.zst", tests::zstandard("one ") + "garbage\n"),
                   "cannot be decompressed"));
  // gzip pads with zeros where a device wants whole blocks.
  const auto padded = folder.write("padded.gz", one + two + std::string(600000, '\0'));
  REQUIRE(all_of(*open_bytes(padded)) == "one two");
}

using config::DocumentKind;
using tests::contains;

const DocumentRule records = {DocumentKind::record, "", "text"};

std::vector<std::string> names(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::string> names;
  for (const auto& path : paths) names.push_back(path.filename().string());
  return names;
}

TEST_CASE("a folder gives its files of the wanted format in bytewise order, compressed or not") {
  tests::TemporaryFolder folder;
  for (const char* name : {"b.txt", "B.txt.gz", "a.txt.zst", "c.md", "d.jsonl", "e.ndjson.gz"}) {
    folder.write(name, "");
  }
  folder.write("f.txt/g.txt", "in a folder of its own");
  using Names = std::vector<std::string>;
  REQUIRE(names(list_text_files(folder.path(), {})) == Names{"B.txt.gz", "a.txt.zst", "b.txt"});
  REQUIRE(names(list_text_files(folder.path(), records)) == Names{"d.jsonl", "e.ndjson.gz"});
}

TEST_CASE("a text of a folder that is not there is no text that is left out") {
  tests::TemporaryFolder folder;
  folder.write("a.txt", "there");
  folder.write("elsewhere/b", "there too");
  std::filesystem::create_symlink(folder / "elsewhere/b", folder / "b.txt");
  std::filesystem::create_symlink(folder / "nowhere", folder / "c.md");  // no text by its name
  REQUIRE(names(list_text_files(folder.path(), {})) == std::vector<std::string>{"a.txt", "b.txt"});
  std::filesystem::remove(folder / "elsewhere/b");
  const std::string error = tests::error_of([&] { list_text_files(folder.path(), {}); });
  INFO(error);
  REQUIRE(contains(error, "b.txt' leads to"));
  REQUIRE(contains(error, "which is not there"));
  REQUIRE(contains(error, "remove the link"));
}

TEST_CASE("parquet is refused with what to do instead") {
  tests::TemporaryFolder folder;
  folder.write("data/train.parquet", "PAR1");
  for (const auto& path : {folder / "data", folder / "data/train.parquet"}) {
    const std::string error = tests::error_of([&] { list_text_files(path, records); });
    INFO(error);
    REQUIRE(contains(error, "is parquet, which forge does not read"));
    REQUIRE(contains(error, "pandas.read_parquet"));
  }
}

TEST_CASE("positions and counts of bytes belong to one another") {
  tests::TemporaryFolder folder;
  folder.write("a.txt", "abc");
  folder.write("b.txt", "");
  folder.write("c.txt.gz", tests::gzipped("defgh"));
  const TextFiles files = find_text_files(folder.path(), {});
  REQUIRE(files.sizes == std::vector<int64_t>{3, 0, 5});
  REQUIRE(files.bytes() == 8);
  for (int64_t bytes = 0; bytes <= 8; ++bytes) {
    REQUIRE(files.bytes_before(files.position_at(bytes)) == bytes);
  }
  REQUIRE(files.position_at(3) == TextPosition{2, 0});
  REQUIRE(files.position_at(8) == files.end());
}

}  // namespace
}  // namespace forge::data
