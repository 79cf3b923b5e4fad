#include "core/data/corpus/corpus.h"

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/data/corpus/chunk_reader.h"
#include "core/data/corpus/document_text.h"
#include "tests/core/data/corpus/compressed.h"
#include "tests/core/data/corpus/cut.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using config::DocumentKind;
using tests::contains;
using Texts = std::vector<std::string>;

Texts texts(const TextRange& range) {
  Texts documents;
  ChunkReader reader(range, tests::cut);
  while (const auto chunk = reader.next()) {
    for (size_t i = 0; i < chunk->parts.size(); ++i) {
      if (chunk->parts[i].begins_document) documents.emplace_back();
      documents.back() += document_text(*range.files, *chunk, i);
    }
  }
  return documents;
}

std::string joined(const TextRange& range) {
  std::string all;
  for (const std::string& document : texts(range)) all += document;
  return all;
}

config::DataConfig text_config(const std::filesystem::path& path, double held_out) {
  config::DataConfig config;
  config.source = "text";
  config.path = path.string();
  config.held_out_fraction = held_out;
  return config;
}

Corpus open(const std::filesystem::path& path, double held_out) {
  return Corpus(text_config(path, held_out));
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
  const Corpus corpus = open(folder.write("a.txt", text), 0.25);
  REQUIRE(joined(corpus.training()) + joined(corpus.evaluation()) == text);
  const std::string held_out = joined(corpus.evaluation());
  REQUIRE(std::abs(static_cast<double>(held_out.size()) / double(text.size()) - 0.25) < 0.02);
  const std::string training = joined(corpus.training());
  REQUIRE(training.substr(training.size() - 2) == "\n\n");
}

TEST_CASE("a far blank line does not move the cut") {
  tests::TemporaryFolder folder;
  const std::string text = "title\n\n" + std::string(1000, 'x');
  REQUIRE(joined(open(folder.write("a.txt", text), 0.1).evaluation()).size() == 100);
}

TEST_CASE("a folder's .txt files are documents in bytewise order") {
  tests::TemporaryFolder folder;
  folder.write("texts/b.txt", "bbbb");
  folder.write("texts/B.txt", "BBBB");
  folder.write("texts/a.txt", "");
  folder.write("texts/c.txt", "cccccccc");
  folder.write("texts/d.md", "not this");
  folder.write("texts/e.txt/f.txt", "nor this");
  const Corpus corpus = open(folder / "texts", 0.25);
  REQUIRE(texts(corpus.training()) == Texts{"BBBB", "bbbb", "cccc"});
  REQUIRE(texts(corpus.evaluation()) == Texts{"cccc"});
}

TEST_CASE("the fingerprint tells contents and splits apart but not names nor compression") {
  tests::TemporaryFolder folder;
  const std::string text(1000, 'a');
  const std::string print = open(folder.write("a.txt", text), 0.1).fingerprint();
  REQUIRE(open(folder.write("b.txt", text), 0.1).fingerprint() == print);
  REQUIRE(open(folder.write("b.txt.gz", tests::gzipped(text)), 0.1).fingerprint() == print);
  REQUIRE(open(folder / "b.txt", 0.2).fingerprint() != print);
  REQUIRE(open(folder.write("c.txt", text + "a"), 0.1).fingerprint() != print);
}

TEST_CASE("the fingerprint of files that are documents is the one that runs have in their keys") {
  tests::TemporaryFolder folder;
  const Corpus corpus = open(folder.write("a.txt", std::string(1000, 'a')), 0.1);
  REQUIRE(corpus.fingerprint() == hash_hex("900 of 1000\n" + std::string(1000, 'a')));
}

/// Lines "0" … "99".
std::string hundred_lines() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + "\n";
  return text;
}

TEST_CASE("of documents within a file the last ones are held out and the first ones trained on") {
  tests::TemporaryFolder folder;
  config::DataConfig config = text_config(folder.write("a.txt", hundred_lines()), 0.05);
  config.documents = DocumentKind::line;
  const Corpus all(config);
  REQUIRE(texts(all.training()).size() == 95);
  REQUIRE(texts(all.evaluation()) == Texts{"95", "96", "97", "98", "99"});
  config.training_fraction = 0.1;
  const Corpus tenth(config);
  REQUIRE(texts(tenth.training()).size() == 10);  // 9.5, to the nearest
  REQUIRE(tenth.training_documents() == 10);
  REQUIRE(texts(tenth.evaluation()) == texts(all.evaluation()));
  REQUIRE(tenth.fingerprint() != all.fingerprint());
}

TEST_CASE("evaluation on files of its own leaves all other documents to training") {
  tests::TemporaryFolder folder;
  config::DataConfig config = text_config(folder.write("a.txt", hundred_lines()), 0.05);
  config.evaluation_path = folder.write("b.txt", "one\ntwo\n").string();
  for (const DocumentKind kind : {DocumentKind::file, DocumentKind::line}) {
    config.documents = kind;
    const Corpus corpus(config);
    const bool file = kind == DocumentKind::file;
    REQUIRE(texts(corpus.training()).size() == (file ? 1 : 100));
    REQUIRE(texts(corpus.evaluation()) == (file ? Texts{"one\ntwo\n"} : Texts{"one", "two"}));
    config.evaluation_path = folder.write("c.txt", "one\nthree\n").string();
    REQUIRE(Corpus(config).fingerprint() != corpus.fingerprint());
    config.evaluation_path = (folder / "b.txt").string();
  }
}

TEST_CASE("many documents are found again by their number") {
  tests::TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i) + (i % 7 == 0 ? "\n\n" : "\n");
  config::DataConfig config = text_config(folder.write("a.txt", text), 0.3);
  config.documents = DocumentKind::line;
  const Corpus corpus(config);
  REQUIRE(texts(corpus.training()).size() == 14000);
  REQUIRE(texts(corpus.training()).back() == "13999");
  REQUIRE(texts(corpus.evaluation()).front() == "14000");
}

TEST_CASE("a large text is sampled in slices spread over it, compressed or not") {
  tests::TemporaryFolder folder;
  std::string text;
  for (int i = 0; text.size() < (size_t{6} << 20); ++i) text += std::to_string(i) + " word\n";
  const auto sample = [&](const std::filesystem::path& path, DocumentKind kind) {
    config::DataConfig config = text_config(path, 0.1);
    config.documents = kind;
    const NextDocument next = Corpus(config).sample();
    Texts slices;
    for (std::string slice; next(slice);) slices.push_back(slice);
    return slices;
  };
  const auto plain = folder.write("a.txt", text);
  const auto zst = folder.write("b.txt.zst", tests::zstandard(text));
  for (const DocumentKind kind : {DocumentKind::file, DocumentKind::line}) {
    const Texts slices = sample(plain, kind);
    size_t bytes = 0;
    for (const std::string& slice : slices) bytes += slice.size();
    REQUIRE(bytes > (size_t{4} << 20) - (size_t{64} << 10));
    REQUIRE(bytes < (size_t{5} << 20));
    REQUIRE(text.find(slices.back()) > text.size() * 8 / 10);
    REQUIRE(sample(zst, kind) == slices);
  }
}

TEST_CASE("what is no text is refused with the reason") {
  tests::TemporaryFolder folder;
  const auto error = [](const fs::path& path) {
    return tests::error_of([&] { open(path, 0.05); });
  };
  REQUIRE(contains(error(folder / "none.txt"), "there is no file or folder"));
  REQUIRE(contains(error(folder.write("empty.txt", "")), "is empty"));
  REQUIRE(contains(error(folder.write("binary.txt", std::string("ab\0c", 4))), "byte 2 is NUL"));
  make_directories(folder / "no_texts");
  REQUIRE(contains(error(folder / "no_texts"), "holds no .txt files"));
  REQUIRE(contains(error("/dev/null"), "neither a file nor a folder"));
  config::DataConfig config = text_config(folder.write("one.txt", "a single line"), 0.05);
  config.documents = DocumentKind::line;
  REQUIRE(contains(tests::error_of([&] { Corpus corpus(config); }),
                   "has 1 document(s), none of which is left for training"));
}

}  // namespace
}  // namespace forge::data
