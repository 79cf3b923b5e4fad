#include "core/data/corpus/document_reader.h"
#include "core/base/random.h"
#include "core/data/corpus/corpus.h"
#include "tests/core/data/corpus/text_samples.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using config::DocumentKind;
using Texts = std::vector<std::string>;

/// All documents of a range; `from` where a reader goes on.
Texts documents_of(const TextRange& range, std::optional<TextPosition> from = {}) {
  Texts documents;
  ChunkReader reader(range, tests::cut, from);
  while (const auto chunk = reader.next()) {
    for (const TextChunk::Part& part : chunk->parts) {
      const std::string text = chunk->text.substr(part.begin, part.end - part.begin);
      if (part.begins_document) {
        documents.push_back(text);
      } else {
        documents.back() += text;
      }
    }
  }
  return documents;
}

Texts divided(const std::string& text, DocumentKind kind, const std::string& separator = "") {
  tests::TemporaryFolder folder;
  return documents_of(all_text(folder.write("a.txt", text), {kind, separator, ""}));
}

TEST_CASE("lines are documents and empty lines are none") {
  REQUIRE(divided("one\r\n\n  \ntwo words\nthree", DocumentKind::line) ==
          Texts{"one", "two words", "three"});
}

TEST_CASE("blocks end at a blank line") {
  REQUIRE(divided("\n\none\ntwo\n\nthree\n \t\r\nfour\n\n\n\nfive\n", DocumentKind::block) ==
          Texts{"one\ntwo", "three", "four", "five"});
  REQUIRE(divided("one\r\ntwo\r\n\r\nthree", DocumentKind::block) == Texts{"one\r\ntwo", "three"});
}

TEST_CASE("a separator stands between documents and is part of none") {
  REQUIRE(divided("\none\n\n1\n<|endoftext|>\n\n<|endoftext|>two<|endoftext|>\n",
                  DocumentKind::separator,
                  "<|endoftext|>") == Texts{"one\n\n1", "two"});
  REQUIRE(divided("aXbXX c", DocumentKind::separator, "X") == Texts{"a", "b", " c"});
}

/// Documents with letters of which some make separators and blank lines likely.
std::string random_text(uint64_t seed, size_t size) {
  RandomStream random(seed, 0);
  const char letters[] = "ab \n\n\n<|>\r";
  std::string text;
  while (text.size() < size) text += letters[random.below(sizeof letters - 1)];
  return text;
}

TEST_CASE("documents do not depend on how much is read at a time nor on compression") {
  tests::TemporaryFolder folder;
  for (const uint64_t seed : {1, 2, 3}) {
    INFO("seed " << seed);
    const std::string text = random_text(seed, 700000);
    const auto plain = folder.write("a.txt", text);
    const auto zst = folder.write("a.txt.zst", tests::zstandard(text));
    for (const DocumentKind kind :
         {DocumentKind::file, DocumentKind::line, DocumentKind::block, DocumentKind::separator}) {
      const DocumentRule rule = {kind, "<|>", ""};
      const Texts documents = documents_of(all_text(plain, rule));
      REQUIRE(documents_of(all_text(zst, rule)) == documents);
      if (kind == DocumentKind::file) REQUIRE(documents == Texts{text});
    }
  }
}

TEST_CASE("reading goes on where a chunk ended") {
  tests::TemporaryFolder folder;
  folder.write("t/a.txt", random_text(4, 2500000));
  folder.write("t/b.txt.gz", tests::gzipped(random_text(5, 2500000)));
  for (const DocumentKind kind : {DocumentKind::file, DocumentKind::line, DocumentKind::block}) {
    const TextRange range = all_text(folder / "t", {kind, "", ""});
    ChunkReader whole(range, tests::cut);
    std::vector<TextChunk> chunks;
    while (auto chunk = whole.next()) chunks.push_back(std::move(*chunk));
    REQUIRE(chunks.size() > 2);
    for (size_t i = 0; i + 1 < chunks.size(); ++i) {
      ChunkReader rest(range, tests::cut, chunks[i].end);
      const auto next = rest.next();
      REQUIRE(next.has_value());
      REQUIRE(next->text == chunks[i + 1].text);
      REQUIRE(next->parts[0].begins_document == chunks[i + 1].parts[0].begins_document);
      REQUIRE(next->parts[0].ends_document == chunks[i + 1].parts[0].ends_document);
      REQUIRE(next->end == chunks[i + 1].end);
    }
  }
}

TEST_CASE("a range that ends within a file gives no byte behind it") {
  tests::TemporaryFolder folder;
  const std::string text = "one two\nthree\nfour\n";
  for (const DocumentKind kind : {DocumentKind::file, DocumentKind::line}) {
    TextRange range = all_text(folder.write("a.txt", text), {kind, "", ""});
    range.end = {0, 14};
    const bool file = kind == DocumentKind::file;
    REQUIRE(documents_of(range) == (file ? Texts{"one two\nthree\n"} : Texts{"one two", "three"}));
    range.begin = {0, 8};
    REQUIRE(documents_of(range) == (file ? Texts{"three\n"} : Texts{"three"}));
  }
}

TEST_CASE("a document without an end is refused before it fills the memory") {
  tests::TemporaryFolder folder;
  const std::string text(max_record_bytes + (size_t{3} << 20), 'x');
  const auto path = folder.write("a.txt.zst", tests::zstandard(text));
  const auto error = [&](DocumentKind kind) {
    return tests::error_of([&] { documents_of(all_text(path, {kind, "<|>", ""})); });
  };
  REQUIRE(tests::contains(error(DocumentKind::line), "has a document of more than 64.00 MiB"));
  REQUIRE(tests::contains(error(DocumentKind::separator), "at byte 0"));
  REQUIRE(tests::contains(error(DocumentKind::file), "64.00 MiB without a place where"));
}

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
  const std::string secret = error(good + "\npassword = 1");
  REQUIRE(contains(secret, "a.jsonl:3 is not a JSON object"));
  REQUIRE_FALSE(contains(secret, "password"));
  REQUIRE(contains(error("{\"text\":3}\n"), "a.jsonl:1: the field 'text' is no text but number"));
  const std::string misspelt = error(good, "test");
  REQUIRE(contains(misspelt, "has no field 'test'"));
  REQUIRE(contains(misspelt, "did you mean 'text'?"));
}

}  // namespace
}  // namespace forge::data
