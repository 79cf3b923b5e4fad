#include "core/data/corpus/document_text.h"

#include "core/data/corpus/corpus.h"
#include "tests/core/data/corpus/cut.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

std::vector<std::string> records_of(const std::string& lines, const std::string& field = "text") {
  tests::TemporaryFolder folder;
  const TextRange range =
      all_text(folder.write("a.jsonl", lines), {config::DocumentKind::record, "", field});
  std::vector<std::string> texts;
  ChunkReader reader(range, tests::cut);
  while (const auto chunk = reader.next()) {
    for (size_t i = 0; i < chunk->parts.size(); ++i) {
      texts.push_back(document_text(*range.files, *chunk, i));
    }
  }
  return texts;
}

TEST_CASE("the text of a record is that of its field, also where it is empty") {
  const std::string lines =
      "{\"text\": \"one\\ntwo\", \"id\": 1}\n\n{\"id\": 2, \"text\": "
      "\"\"}\r\n{\"text\":\"\\u00e4\"}";
  REQUIRE(records_of(lines) == std::vector<std::string>{"one\ntwo", "", "\u00e4"});
  REQUIRE(records_of("{\"page\":\"x\"}", "page") == std::vector<std::string>{"x"});
}

TEST_CASE("a record that is none is named by file and line") {
  using tests::contains;
  const auto error = [](const std::string& lines, const std::string& field = "text") {
    const std::string message = tests::error_of([&] { records_of(lines, field); });
    INFO(message);
    return message;
  };
  const std::string good = "{\"text\":\"a\"}\n";
  REQUIRE(contains(error(good + good + "{\"text\": \n" + good), "a.jsonl:3 is not a JSON object"));
  REQUIRE(contains(error(good + "\n[1]"), "a.jsonl:3 is not a JSON object: [1]"));
  REQUIRE(contains(error("{\"text\":3}\n"), "a.jsonl:1: the field 'text' is no text but number"));
  const std::string misspelt = error(good, "test");
  REQUIRE(contains(misspelt, "has no field 'test'"));
  REQUIRE(contains(misspelt, "did you mean 'text'?"));
}

}  // namespace
}  // namespace forge::data
