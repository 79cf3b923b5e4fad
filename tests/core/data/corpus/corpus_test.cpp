#include <sys/stat.h>

#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/data/corpus/corpus.h"
#include "core/data/corpus/corpus_index.h"
#include "core/data/corpus/document_reader.h"
#include "tests/core/data/corpus/text_samples.h"
#include "tests/support/catch.h"
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
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  REQUIRE(contains(error(folder / "pipe"), "neither a file nor a folder"));
  config::DataConfig config = text_config(folder.write("one.txt", "a single line"), 0.05);
  config.documents = DocumentKind::line;
  REQUIRE(contains(tests::error_of([&] { Corpus corpus(config); }),
                   "has 1 document(s), none of which is left for training"));
}

namespace fs = std::filesystem;

config::DataConfig text_config(const fs::path& path) {
  config::DataConfig config;
  config.source = "text";
  config.path = path.string();
  config.held_out_fraction = 0.25;
  return config;
}

CorpusIndex some_index() {
  CorpusIndex index;
  index.training_sizes = {13};
  index.evaluation_sizes = {13};
  index.training_end = {0, 9};
  index.evaluation_begin = {0, 9};
  index.training_documents = 6;
  index.fingerprint = "abc";
  return index;
}

double later() { return unix_time() + 10; }

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

std::string all_of(NextDocument next) {
  std::string all, document;
  while (next(document)) all += document;
  return all;
}

TEST_CASE("a kept index is found for the same files and the same division") {
  const tests::TemporaryFolder folder;
  const fs::path text = folder / "a.txt", surveys = folder / "surveys";
  write_file_atomic(text, "one two three");
  config::DataConfig config = text_config(text);
  REQUIRE_FALSE(CorpusIndexCache(surveys, config, later()).load());
  CorpusIndexCache(surveys, config, later()).store(some_index());
  const std::optional<CorpusIndex> found = CorpusIndexCache(surveys, config, later()).load();
  REQUIRE(found);
  REQUIRE(found->training_sizes == some_index().training_sizes);
  REQUIRE(found->evaluation_sizes == some_index().evaluation_sizes);
  REQUIRE(found->training_end == some_index().training_end);
  REQUIRE(found->evaluation_begin == some_index().evaluation_begin);
  REQUIRE(found->training_documents == 6);
  REQUIRE(found->fingerprint == "abc");

  config.held_out_fraction = 0.5;
  REQUIRE_FALSE(CorpusIndexCache(surveys, config, later()).load());
  config.held_out_fraction = 0.25;
  config.training_fraction = 0.5;
  REQUIRE_FALSE(CorpusIndexCache(surveys, config, later()).load());
  config.training_fraction = 1;
  config.documents = config::DocumentKind::separator;
  REQUIRE_FALSE(CorpusIndexCache(surveys, config, later()).load());
  config.documents = config::DocumentKind::file;
  config.evaluation_path = text.string();
  REQUIRE_FALSE(CorpusIndexCache(surveys, config, later()).load());
  config.evaluation_path.clear();
  REQUIRE(CorpusIndexCache(surveys, config, later()).load());
}

TEST_CASE("a file that is not UTF-8 is named with the first such byte and their number") {
  const tests::TemporaryFolder folder;
  const fs::path text = folder / "text", surveys = folder / "surveys";
  make_directories(text);
  // Characters of two to four bytes at the border of what is read at once are whole.
  const std::string good = std::string((size_t{1} << 20) - 1, 'a') + "\u00e9\u4f60\U0001f600\n";
  write_file_atomic(text / "good.txt", good);
  write_file_atomic(text / "latin.txt", good + "caf\xe9 au lait, d\xe9j\xe0");
  write_file_atomic(text / "cut.txt", "cut \xf0\x9f");
  const auto warnings = [&] { return Corpus(text_config(text), {}, surveys).warnings(); };
  const Texts found = warnings();
  REQUIRE(found.size() == 2);
  CHECK(contains(found[0], "cut.txt' has 2 bytes that are not UTF-8, the first at byte 4;"));
  CHECK(
      contains(found[1], "latin.txt' has 3 bytes that are not UTF-8, the first at byte 1,048,588"));
  CHECK(contains(found[1], "iconv"));
  CorpusIndex index = some_index();
  index.invalid = {{"a.txt", 7, 1}};
  const config::DataConfig config = text_config(text / "good.txt");
  CorpusIndexCache(surveys, config, later()).store(index);
  CHECK(CorpusIndexCache(surveys, config, later()).load()->invalid.at(0).first == 7);
  CHECK(contains(describe(index.invalid[0]), "'a.txt' has 1 byte that is not UTF-8"));
}

TEST_CASE("a changed, replaced or new file needs another index") {
  const tests::TemporaryFolder folder;
  const fs::path text = folder / "text", surveys = folder / "surveys";
  make_directories(text);
  write_file_atomic(text / "a.txt", "one two three");
  const config::DataConfig config = text_config(text);
  CorpusIndexCache(surveys, config, later()).store(some_index());
  REQUIRE(CorpusIndexCache(surveys, config, later()).load());
  write_file_atomic(text / "a.txt", "one two thrEE");
  REQUIRE_FALSE(CorpusIndexCache(surveys, config, later()).load());
  CorpusIndexCache(surveys, config, later()).store(some_index());
  REQUIRE(CorpusIndexCache(surveys, config, later()).load());
  write_file_atomic(text / "b.txt", "four");
  REQUIRE_FALSE(CorpusIndexCache(surveys, config, later()).load());
}

TEST_CASE("an index is not stored of files that change meanwhile or have just been written") {
  const tests::TemporaryFolder folder;
  const fs::path text = folder / "a.txt", surveys = folder / "surveys";
  write_file_atomic(text, "one two three");
  const config::DataConfig config = text_config(text);
  CorpusIndexCache(surveys, config).store(some_index());
  REQUIRE(files_in(surveys).empty());
  const CorpusIndexCache early(surveys, config, later());
  write_file_atomic(text, "one two four");
  early.store(some_index());
  REQUIRE(files_in(surveys).empty());
  CorpusIndexCache("", config, later()).store(some_index());
}

TEST_CASE("a corpus of a kept index is the corpus that was read") {
  const tests::TemporaryFolder folder;
  const fs::path surveys = folder / "surveys";
  // A file that was there long before this test.
  const config::DataConfig config =
      text_config(tests::tests_dir() / "core" / "data" / "corpus" / "corpus_test.cpp");
  const Corpus read(config);
  REQUIRE(Corpus(config, {}, surveys).fingerprint() == read.fingerprint());
  REQUIRE(files_in(surveys).size() == 1);
  const fs::path kept = files_in(surveys)[0];
  std::string json = read_file(kept);
  const size_t place = json.find(read.fingerprint());
  REQUIRE(place != std::string::npos);
  write_file_atomic(kept, json.replace(place, read.fingerprint().size(), "kept"));

  const Corpus found(config, {}, surveys);
  REQUIRE(found.fingerprint() == "kept");
  REQUIRE(found.training().begin == read.training().begin);
  REQUIRE(found.training().end == read.training().end);
  REQUIRE(found.evaluation().begin == read.evaluation().begin);
  REQUIRE(found.evaluation().end == read.evaluation().end);
  REQUIRE(found.training().bytes() == read.training().bytes());
  REQUIRE(found.training_documents() == read.training_documents());
  REQUIRE(all_of(found.sample()) == all_of(read.sample()));

  const std::string sizes = "\"training_sizes\":[";
  const size_t of_sizes = json.find(sizes) + sizes.size();
  for (const std::string& damaged : {std::string("{\"training_sizes\": 3"),
                                     std::string(json).insert(of_sizes, "5,"),
                                     std::string(json).insert(of_sizes, "-")}) {
    write_file_atomic(kept, damaged);
    REQUIRE(Corpus(config, {}, surveys).fingerprint() == read.fingerprint());
  }
}

}  // namespace
}  // namespace forge::data
