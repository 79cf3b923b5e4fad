#include "core/data/token_file_writer.h"

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/data/token_file.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

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
    file.check_content();
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
