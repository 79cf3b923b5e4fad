#include <cstring>

#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/data/rows/token_file.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

const std::string fingerprint = hash_hex("a tokenizer");

std::filesystem::path write_ids(const tests::TemporaryFolder& folder,
                                const std::vector<int32_t>& ids,
                                int vocab_size) {
  TokenFileWriter writer(folder / "a.tokens", vocab_size, fingerprint);
  writer.append(ids.data(), 2);
  writer.append(ids.data() + 2, ids.size() - 2);
  REQUIRE(writer.size() == static_cast<int64_t>(ids.size()));
  writer.finish();
  return folder / "a.tokens";
}

TEST_CASE("a token file gives back its ids in two or four bytes each") {
  tests::TemporaryFolder folder;
  for (const int vocab_size : {65536, 65537}) {
    const std::vector<int32_t> ids = {0, 1, 65535, 7, 300};
    const auto path = write_ids(folder, ids, vocab_size);
    const size_t bytes = vocab_size == 65536 ? 2 : 4;
    REQUIRE(std::filesystem::file_size(path) == (72 + 5 * bytes + 7) / 8 * 8);
    const TokenFile file(path);
    REQUIRE(file.size() == 5);
    std::vector<int32_t> read(3);
    file.read(1, 3, read.data());
    REQUIRE(read == std::vector<int32_t>{1, 65535, 7});
    REQUIRE(file.tokenizer_fingerprint() == fingerprint);
    file.verify_hash();
  }
}

TEST_CASE("the header is where other programs may expect it") {
  tests::TemporaryFolder folder;
  const std::string content = read_file(write_ids(folder, {258, 1, 2}, 2000));
  REQUIRE(content.substr(0, 8) == "forgetok");
  REQUIRE(content.substr(8, 8) == std::string("\2\0\0\0\2\0\0\0", 8));
  REQUIRE(content.substr(16, 8) == std::string("\3\0\0\0\0\0\0\0", 8));
  REQUIRE(content.substr(72) == std::string("\2\1\1\0\2\0\0\0", 8));
}

TEST_CASE("reading outside a token file is refused") {
  tests::TemporaryFolder folder;
  const TokenFile file(write_ids(folder, {1, 2, 3}, 2000));
  std::vector<int32_t> ids(8);
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 4}, {3, 1}, {-1, 1}, {0, -1}, {INT64_MAX, 1}, {1, INT64_MAX}}) {
    REQUIRE(tests::error_of([&, f = first, n = count] { file.read(f, n, ids.data()); }) != "");
  }
  file.read(3, 0, ids.data());
}

TEST_CASE("a damaged token file is refused with what is wrong") {
  tests::TemporaryFolder folder;
  const std::string whole = read_file(write_ids(folder, {1, 2, 3, 4}, 2000));
  const auto error = [&](std::string content) {
    const auto path = folder.write("bad.tokens", content);
    return tests::error_of([&] { TokenFile(path).verify_hash(); });
  };
  REQUIRE(error(whole) == "");
  REQUIRE(error("").find("ends within its header") != std::string::npos);
  REQUIRE(error(whole.substr(0, 71)).find("ends within its header") != std::string::npos);
  REQUIRE(error(whole.substr(0, whole.size() - 1)).find("has 79 bytes, its header says 80") !=
          std::string::npos);
  REQUIRE(error(whole + "x").find("its header says 80") != std::string::npos);
  REQUIRE(error("F" + whole.substr(1)).find("does not begin with") != std::string::npos);
  for (size_t place = 12; place < 72; ++place) {
    std::string damaged = whole;
    damaged[place] ^= 0x40;
    REQUIRE(error(damaged).find("its header is damaged") != std::string::npos);
  }
  std::string newer = whole;
  newer[8] = 3;
  REQUIRE(error(newer).find("version 3") != std::string::npos);
  std::string older = whole;
  older[8] = 1;
  REQUIRE(error(older).find("version 1") != std::string::npos);
  std::string changed = whole;
  changed[74] ^= 1;
  REQUIRE(error(changed).find("does not have the hash") != std::string::npos);
}

TEST_CASE("a token file is not seen before it is finished and leaves nothing when given up") {
  tests::TemporaryFolder folder;
  {
    TokenFileWriter writer(folder / "a.tokens", 2000, fingerprint);
    const int32_t id = 5;
    writer.append(&id, 1);
    REQUIRE_FALSE(std::filesystem::exists(folder / "a.tokens"));
  }
  REQUIRE(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("ids that do not fit are refused") {
  tests::TemporaryFolder folder;
  TokenFileWriter writer(folder / "a.tokens", 2000, fingerprint);
  for (const int32_t id : {-1, 65536}) {
    REQUIRE(tests::error_of([&] { writer.append(&id, 1); }).find("does not fit") !=
            std::string::npos);
  }
  REQUIRE(tests::error_of([&] { TokenFileWriter(folder / "b.tokens", 2000, "short"); }) != "");
}

const std::string tokenizer_fingerprint = hash_hex("a tokenizer");

std::vector<int32_t> range(int first, int count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) ids[static_cast<size_t>(i)] = first + i;
  return ids;
}

void append(TokenFileWriter& writer, int first, int count, const std::vector<int64_t>& documents) {
  const std::vector<int32_t> ids = range(first, count);
  writer.append(ids.data(), ids.size(), documents);
}

/// Writes ids 0 … 8, saves, writes more and ends without finishing, as a killed process does.
void break_off(const std::filesystem::path& path, const std::string& purpose) {
  TokenFileWriter writer(path, 2000, tokenizer_fingerprint, purpose);
  append(writer, 0, 9, {0, 4});
  writer.save("behind 9");
  append(writer, 100, 50, {0});
}

TEST_CASE("documents are found in a token file by their number") {
  tests::TemporaryFolder folder;
  for (const int vocab_size : {2000, 70000}) {
    TokenFileWriter writer(folder / "a.tokens", vocab_size, tokenizer_fingerprint);
    append(writer, 0, 5, {0, 3});
    append(writer, 5, 4, {});
    append(writer, 9, 2, {1, 2});
    writer.finish();
    const TokenFile file(folder / "a.tokens");
    file.verify_hash();
    REQUIRE(file.documents() == 4);
    const std::vector<std::pair<int64_t, int64_t>> spans = {{0, 3}, {3, 7}, {10, 1}, {11, 0}};
    for (size_t i = 0; i < spans.size(); ++i) {
      const TokenSpan span = file.document(static_cast<int64_t>(i));
      REQUIRE(span.first == spans[i].first);
      REQUIRE(span.count == spans[i].second);
    }
    REQUIRE(tests::error_of([&] { file.document(4); }) != "");
    REQUIRE(tests::error_of([&] { file.document(-1); }) != "");
  }
}

TEST_CASE("work that was broken off is gone on with after its last save") {
  tests::TemporaryFolder folder;
  const auto path = folder / "a.tokens";
  break_off(path, "a text");
  REQUIRE_FALSE(fs::exists(path));
  {
    TokenFileWriter writer(path, 2000, tokenizer_fingerprint, "a text");
    REQUIRE(writer.resumed_from() == "behind 9");
    REQUIRE(writer.size() == 9);
    REQUIRE(writer.documents() == 2);
    append(writer, 9, 3, {1});
    writer.finish();
  }
  TokenFileWriter at_once(folder / "b.tokens", 2000, tokenizer_fingerprint);
  append(at_once, 0, 12, {0, 4, 10});
  at_once.finish();
  REQUIRE(read_file(path) == read_file(folder / "b.tokens"));
  REQUIRE_FALSE(fs::exists(path.string() + ".partial"));
  REQUIRE_FALSE(fs::exists(path.string() + ".partial.json"));
  REQUIRE_FALSE(fs::exists(path.string() + ".partial.documents"));
}

TEST_CASE("work of another purpose or tokenizer and damaged work is begun anew") {
  tests::TemporaryFolder folder;
  const auto path = folder / "a.tokens";
  const auto begins_anew = [&](const std::string& tokenizer, const std::string& purpose) {
    TokenFileWriter writer(path, 2000, tokenizer, purpose);
    return writer.resumed_from().empty() && writer.size() == 0 && writer.documents() == 0;
  };
  const auto damage = [&](const std::string& suffix, size_t place) {
    std::string content = read_file(path.string() + suffix);
    content.at(place) = static_cast<char>(content.at(place) ^ 1);
    write_file_atomic(path.string() + suffix, content);
  };
  break_off(path, "a text");
  REQUIRE(begins_anew(tokenizer_fingerprint, "another text"));
  break_off(path, "a text");
  REQUIRE(begins_anew(hash_hex("another tokenizer"), "a text"));
  break_off(path, "a text");
  damage(".partial", 72 + 3);
  REQUIRE(begins_anew(tokenizer_fingerprint, "a text"));
  break_off(path, "a text");
  damage(".partial.documents", 8);
  REQUIRE(begins_anew(tokenizer_fingerprint, "a text"));
  break_off(path, "a text");
  fs::resize_file(path.string() + ".partial", 80);
  REQUIRE(begins_anew(tokenizer_fingerprint, "a text"));
  break_off(path, "a text");
  write_file_atomic(path.string() + ".partial.json", "{\"purpose\": \"a te");
  REQUIRE(begins_anew(tokenizer_fingerprint, "a text"));
  break_off(path, "a text");
  REQUIRE_FALSE(begins_anew(tokenizer_fingerprint, "a text"));
}

}  // namespace
}  // namespace forge::data
