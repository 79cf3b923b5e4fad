#include "core/data/text_corpus.h"

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using Texts = std::vector<std::string>;

Texts texts(const std::vector<std::string_view>& documents) {
  return {documents.begin(), documents.end()};
}

std::string joined(const std::vector<std::string_view>& documents) {
  std::string all;
  for (const std::string_view document : documents) all += document;
  return all;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a text is cut behind the nearest blank line in range") {
  const std::string text = "one\n\ntwo\nthree\n\nfour four four";
  REQUIRE(cut_near(text, 7, 20) == 5);
  REQUIRE(cut_near(text, 13, 20) == 16);
  REQUIRE(cut_near(text, 16, 20) == 16);
  REQUIRE(cut_near("a\r\n\r\nbcdefgh", 7, 10) == 5);
}

TEST_CASE("without a blank line nearby a text is cut behind a line and else before a character") {
  REQUIRE(cut_near("one\n\ntwo two two\nthree three", 18, 4) == 17);
  REQUIRE(cut_near("abcdefghij", 4, 10) == 4);
  REQUIRE(cut_near("\u4f60\u4f60\u4f60\u4f60", 4, 10) == 3);
  REQUIRE(cut_near("\u4f60\u4f60\u4f60\u4f60", 5, 10) == 3);
  REQUIRE(cut_near("\u4f60\u4f60\u4f60\u4f60", 6, 10) == 6);
}

TEST_CASE("the last part of the bytes is held out") {
  tests::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i) + (i % 10 == 9 ? "\n\n" : "\n");
  const TextCorpus corpus(folder.write("a.txt", text), 0.25);
  REQUIRE(corpus.bytes() == static_cast<int64_t>(text.size()));
  REQUIRE(joined(corpus.training()) + joined(corpus.evaluation()) == text);
  const std::string held_out = joined(corpus.evaluation());
  REQUIRE(std::abs(static_cast<double>(held_out.size()) / text.size() - 0.25) < 0.02);
  REQUIRE(joined(corpus.training()).substr(corpus.training()[0].size() - 2) == "\n\n");
}

TEST_CASE("a far blank line does not move the cut") {
  tests::TemporaryFolder folder;
  const std::string text = "title\n\n" + std::string(1000, 'x');
  REQUIRE(joined(TextCorpus(folder.write("a.txt", text), 0.1).evaluation()).size() == 100);
}

TEST_CASE("a folder's .txt files are documents in bytewise order") {
  tests::TemporaryFolder folder;
  folder.write("texts/b.txt", "bbbb");
  folder.write("texts/B.txt", "BBBB");
  folder.write("texts/a.txt", "");
  folder.write("texts/c.txt", "cccccccc");
  folder.write("texts/d.md", "not this");
  folder.write("texts/e.txt/f.txt", "nor this");
  const TextCorpus corpus(folder / "texts", 0.25);
  REQUIRE(texts(corpus.training()) == Texts{"BBBB", "bbbb", "cccc"});
  REQUIRE(texts(corpus.evaluation()) == Texts{"cccc"});
}

TEST_CASE("the fingerprint tells contents and splits apart but not names") {
  tests::TemporaryFolder folder;
  const std::string text(1000, 'a');
  const std::string print = TextCorpus(folder.write("a.txt", text), 0.1).fingerprint();
  REQUIRE(TextCorpus(folder.write("b.txt", text), 0.1).fingerprint() == print);
  REQUIRE(TextCorpus(folder / "b.txt", 0.2).fingerprint() != print);
  REQUIRE(TextCorpus(folder.write("c.txt", text + "a"), 0.1).fingerprint() != print);
}

TEST_CASE("what is no text is refused with the reason") {
  tests::TemporaryFolder folder;
  const auto error = [](const fs::path& path) {
    return tests::error_of([&] { TextCorpus(path, 0.05); });
  };
  REQUIRE(contains(error(folder / "none.txt"), "there is no file or folder"));
  REQUIRE(contains(error(folder.write("empty.txt", "")), "is empty"));
  REQUIRE(contains(error(folder.write("binary.txt", std::string("ab\0c", 4))), "byte 2 is NUL"));
  make_directories(folder / "no_texts");
  REQUIRE(contains(error(folder / "no_texts"), "holds no .txt files"));
  REQUIRE(contains(error("/dev/null"), "neither a file nor a folder"));
}

}  // namespace
}  // namespace forge::data
