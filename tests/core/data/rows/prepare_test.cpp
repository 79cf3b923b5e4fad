#include "core/data/rows/prepare.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/data/rows/dataset.h"
#include "core/data/rows/token_file.h"
#include "core/data/stories/toy_stories.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "tests/core/data/rows/small_experiment.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using tests::contains;

config::Experiment text_experiment(const std::filesystem::path& path) {
  config::Experiment experiment = small_experiment();
  experiment.data.source = "text";
  experiment.data.path = path.string();
  experiment.data.held_out_fraction = 0.1;
  experiment.train.seq_len = 16;
  return experiment;
}

TEST_CASE("documents are told apart by their BOS where the run asks for it") {
  tests::TemporaryFolder folder;
  config::Experiment experiment = small_experiment();
  REQUIRE_FALSE(prepare(experiment, folder.path(), {}).document_start.has_value());
  experiment.train.document_mask = true;
  const PreparedData prepared = prepare(experiment, folder.path(), {});
  REQUIRE(prepared.document_start == 0);

  // The same tokenizer, which puts nothing in front of a document.
  nlohmann::json tokenizer = nlohmann::json::parse(read_file(prepared.tokenizer));
  tokenizer["post_processor"] = nullptr;
  experiment.tokenizer.path = folder.write("without_bos.json", tokenizer.dump());
  const std::string error = tests::error_of([&] { prepare(experiment, folder.path(), {}); });
  INFO(error);
  REQUIRE(error.find("the tokenizer has no BOS to begin a document with") != std::string::npos);
  experiment.train.document_mask = false;
  REQUIRE_FALSE(prepare(experiment, folder.path(), {}).document_start.has_value());
}

std::string some_text(int stories) {
  std::string text;
  for (int i = 0; i < stories; ++i)
    text += toy_story(8, Split::training, static_cast<uint64_t>(i)) + "\n\n";
  return text;
}

std::vector<int32_t> all_ids(const std::filesystem::path& path) {
  const TokenFile file(path);
  std::vector<int32_t> ids(static_cast<size_t>(file.size()));
  file.read(0, file.size(), ids.data());
  return ids;
}

/// For its owner, which counts where the tests do not run as root.
void set_writable(const std::filesystem::path& folder, bool is_writable) {
  const auto set = [&](const std::filesystem::path& entry) {
    std::filesystem::permissions(
        entry,
        std::filesystem::perms::owner_write,
        is_writable ? std::filesystem::perm_options::add : std::filesystem::perm_options::remove);
  };
  set(folder);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) set(entry);
}

/// Phases that were worked on.
std::vector<std::string> phases(const config::Experiment& experiment,
                                const std::filesystem::path& cache) {
  std::vector<std::string> seen;
  prepare(experiment, cache, [&](double, const std::string& phase) {
    if (seen.empty() || seen.back() != phase) seen.push_back(phase);
  });
  return seen;
}

const std::vector<std::string> everything = {"training the tokenizer",
                                             "writing training tokens",
                                             "writing evaluation tokens",
                                             "looking for repeated sentences"};

TEST_CASE("generated text is prepared as the rows that a run needs") {
  tests::TemporaryFolder cache;
  const config::Experiment experiment = small_experiment();
  const PreparedData prepared = prepare(experiment, cache.path(), {});
  REQUIRE(prepared.train[0].rows == 8);
  REQUIRE(prepared.evaluation[0].rows == 3);
  const Tokenizer tokenizer = load_tokenizer(prepared.tokenizer);
  REQUIRE(tokenizer.vocab_size() == 400);
  REQUIRE(tokenizer.fingerprint() == prepared.tokenizer_fingerprint);
  const std::vector<int32_t> ids = all_ids(prepared.train[0].tokens);
  REQUIRE(ids.size() >= 8 * 64 + 1);
  std::vector<int32_t> expected = tokenizer.encode_document(toy_story(1, Split::training, 0));
  tokenizer.append_document(toy_story(1, Split::training, 1), expected);
  REQUIRE(std::equal(expected.begin(), expected.end(), ids.begin()));
  const std::vector<int32_t> held_out =
      tokenizer.encode_document(toy_story(1, Split::evaluation, 0));
  const std::vector<int32_t> evaluation = all_ids(prepared.evaluation[0].tokens);
  REQUIRE(std::equal(held_out.begin(), held_out.end(), evaluation.begin()));
  REQUIRE(
      Dataset(prepared.train[0].tokens, {64, config::RowOrder::shuffled, 1, prepared.train[0].rows})
          .rows() == 8);
}

TEST_CASE("data that is prepared is not prepared again") {
  tests::TemporaryFolder cache;
  REQUIRE(phases(small_experiment(), cache.path()) == everything);
  REQUIRE(phases(small_experiment(), cache.path()).empty());
}

TEST_CASE("a longer run has the tokens of a shorter one as its beginning") {
  tests::TemporaryFolder cache;
  config::Experiment experiment = small_experiment();
  const PreparedData first = prepare(experiment, cache.path(), {});
  const std::vector<int32_t> before = all_ids(first.train[0].tokens);
  experiment.train.max_steps = static_cast<int64_t>(before.size()) / (2 * 64) + 1;
  const PreparedData second = prepare(experiment, cache.path(), {});
  const std::vector<int32_t> after = all_ids(second.train[0].tokens);
  REQUIRE(second.data_fingerprint == first.data_fingerprint);
  REQUIRE(second.train[0].tokens == first.train[0].tokens);
  REQUIRE(after.size() > before.size());
  REQUIRE(std::equal(before.begin(), before.end(), after.begin()));
  // and the longer file serves the shorter run, with the rows of before
  REQUIRE(phases(small_experiment(), cache.path()).empty());
  REQUIRE(prepare(small_experiment(), cache.path(), {}).train[0].rows == 8);
}

TEST_CASE("a cache that may only be read is used as far as it goes", "[cache]") {
  const tests::TemporaryFolder folder;
  const std::filesystem::path cache = folder / "cache";
  config::Experiment experiment = small_experiment();
  prepare(experiment, cache, {});
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  const auto words = [&](const config::Experiment& wanted) {
    return tests::words_of_other_user(
        [&] { return std::to_string(prepare(wanted, cache, {}).train.at(0).rows) + " rows"; });
  };
  set_writable(cache, false);
  CHECK(words(experiment) ==
        std::to_string(prepare(experiment, cache, {}).train.at(0).rows) + " rows");
  experiment.train.max_steps *= 1000;
  CHECK(contains(words(experiment), "has no usable training tokens, and you may not write there"));
  CHECK(contains(words(experiment), "FORGE_CACHE_DIR names a cache of your own"));
  experiment.data.seed += 1;
  CHECK(contains(words(experiment), "has no usable tokenizer, and you may not write there"));
  set_writable(cache, true);
}

TEST_CASE("another seed or vocabulary is other data") {
  tests::TemporaryFolder cache;
  config::Experiment experiment = small_experiment();
  const PreparedData one = prepare(experiment, cache.path(), {});
  experiment.data.seed = 2;
  const PreparedData two = prepare(experiment, cache.path(), {});
  REQUIRE(one.data_fingerprint != two.data_fingerprint);
  experiment.tokenizer.vocab_size = 300;
  const PreparedData three = prepare(experiment, cache.path(), {});
  REQUIRE(three.data_fingerprint == two.data_fingerprint);
  REQUIRE(three.tokenizer_fingerprint != two.tokenizer_fingerprint);
  REQUIRE(three.train[0].tokens != two.train[0].tokens);
}

TEST_CASE("what a killed preparation left is cleared away") {
  tests::TemporaryFolder cache;
  const PreparedData prepared = prepare(small_experiment(), cache.path(), {});
  const auto folder = prepared.train[0].tokens.parent_path();
  std::filesystem::remove(prepared.train[0].tokens);
  const auto half = folder / ("train.tokens.tmp-" + process_digits());
  write_file_atomic(half, "half");
  REQUIRE(phases(small_experiment(), cache.path()) ==
          std::vector<std::string>{"writing training tokens"});
  REQUIRE_FALSE(std::filesystem::exists(half));
}

TEST_CASE("a preparation that is stopped leaves no token file and is gone on with") {
  tests::TemporaryFolder cache;
  const auto stop_while_writing = [](double, const std::string& phase) {
    if (phase == "writing training tokens") throw std::runtime_error("stopped");
  };
  REQUIRE_THROWS_WITH(prepare(small_experiment(), cache.path(), stop_while_writing), "stopped");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache.path())) {
    REQUIRE(entry.path().extension() != ".tokens");
  }
  const PreparedData prepared = prepare(small_experiment(), cache.path(), {});
  REQUIRE(prepared.train[0].rows == 8);
  for (const auto& entry :
       std::filesystem::directory_iterator(prepared.train[0].tokens.parent_path())) {
    REQUIRE_FALSE(contains(entry.path().string(), ".partial"));
  }
}

TEST_CASE("padded rows of stories are one story each, as many as the run needs") {
  tests::TemporaryFolder cache;
  config::Experiment experiment = small_experiment();
  experiment.data.rows = config::RowKind::padded;
  const PreparedData prepared = prepare(experiment, cache.path(), {});
  REQUIRE(prepared.train[0].rows == 8);
  REQUIRE(prepared.evaluation[0].rows == 3);
  REQUIRE(prepared.pad_id == 1);
  REQUIRE(TokenFile(prepared.train[0].tokens).documents() >= 8);
  // The token files are those of packed rows: how rows are cut does not change them.
  experiment.data.rows = config::RowKind::packed;
  REQUIRE(prepare(experiment, cache.path(), {}).train[0].tokens == prepared.train[0].tokens);
}

TEST_CASE("documents of a file are rows, the first part of them and the others for evaluation") {
  tests::TemporaryFolder folder;
  std::string text;
  for (uint64_t i = 0; i < 40; ++i) {
    text += toy_story(8, Split::training, i) + "\n<|endoftext|>\n";
  }
  config::Experiment experiment = text_experiment(folder.write("train.txt", text));
  experiment.data.documents = config::DocumentKind::separator;
  experiment.data.rows = config::RowKind::padded;
  experiment.data.training_fraction = 0.1;
  experiment.data.evaluation_path = folder.write("valid.txt", text.substr(0, text.size() / 2));
  const PreparedData prepared = prepare(experiment, folder / "cache", {});
  REQUIRE(prepared.train[0].rows == 4);
  REQUIRE(prepared.evaluation[0].rows == 3);  // train.eval_rows
  const TokenFile evaluation(prepared.evaluation[0].tokens);
  REQUIRE(evaluation.documents() > 15);
  const Tokenizer tokenizer = load_tokenizer(prepared.tokenizer);
  const TokenSpan span = evaluation.document(2);
  std::vector<int32_t> ids(static_cast<size_t>(span.count));
  evaluation.read(span.first, span.count, ids.data());
  REQUIRE(ids == tokenizer.encode_document(toy_story(8, Split::training, 2)));
}

TEST_CASE("damaged files in the cache are made anew") {
  tests::TemporaryFolder cache;
  const PreparedData prepared = prepare(small_experiment(), cache.path(), {});
  const std::string tokens = read_file(prepared.train[0].tokens);
  const std::string tokenizer = read_file(prepared.tokenizer);

  write_file_atomic(prepared.train[0].tokens, tokens.substr(0, tokens.size() - 2));
  REQUIRE(phases(small_experiment(), cache.path()) ==
          std::vector<std::string>{"writing training tokens"});
  REQUIRE(read_file(prepared.train[0].tokens) == tokens);

  std::string changed = tokens;
  changed[90] ^= 1;
  write_file_atomic(prepared.train[0].tokens, changed);
  prepare(small_experiment(), cache.path(), {});
  REQUIRE(read_file(prepared.train[0].tokens) == tokens);

  nlohmann::ordered_json json = nlohmann::ordered_json::parse(tokenizer);
  std::swap(json["model"]["merges"][0], json["model"]["merges"][1]);
  const std::string other_merges = json.dump(2) + "\n";
  for (const std::string& damaged : {std::string("{"), std::string(), other_merges}) {
    write_file_atomic(prepared.tokenizer, damaged);
    REQUIRE(phases(small_experiment(), cache.path()) ==
            std::vector<std::string>{"training the tokenizer"});
    REQUIRE(read_file(prepared.tokenizer) == tokenizer);
  }
}

TEST_CASE("two preparations at once do the work once") {
  tests::TemporaryFolder cache;
  // The one that waits for longer than a second says so, which is no work.
  const auto one = [&] {
    const std::vector<std::string> said = phases(small_experiment(), cache.path());
    return std::count_if(said.begin(), said.end(), [](const std::string& phase) {
      return phase.rfind("waiting for ", 0) != 0;
    });
  };
  auto first = std::async(std::launch::async, one);
  auto second = std::async(std::launch::async, one);
  REQUIRE(static_cast<size_t>(first.get() + second.get()) == everything.size());
}

TEST_CASE("text of one's own is split encoded and packed") {
  tests::TemporaryFolder folder;
  folder.write("texts/a.txt", some_text(30));
  folder.write("texts/b.txt", some_text(20));
  const config::Experiment experiment = text_experiment(folder / "texts");
  const PreparedData prepared = prepare(experiment, folder / "cache", {});
  const Tokenizer tokenizer = load_tokenizer(prepared.tokenizer);
  std::vector<int32_t> ids = all_ids(prepared.train[0].tokens);
  REQUIRE(std::count(ids.begin(), ids.end(), 0) == 2);  // a BOS for each file
  REQUIRE(ids[0] == 0);
  REQUIRE(prepared.train[0].rows == (static_cast<int64_t>(ids.size()) - 1) / 16);
  REQUIRE(prepared.evaluation[0].rows == 3);
  const std::string first = some_text(30);
  REQUIRE(tokenizer.decode(ids).substr(0, first.size()) == first);
  const std::vector<int32_t> held_out = all_ids(prepared.evaluation[0].tokens);
  const std::string end = tokenizer.decode(held_out);
  REQUIRE(some_text(20).substr(some_text(20).size() - end.size()) == end);
  REQUIRE(phases(experiment, folder / "cache") == std::vector<std::string>{"hashing text"});
}

TEST_CASE("a text longer than what is encoded at once has the ids of the whole") {
  tests::TemporaryFolder folder;
  const std::string text = some_text(2500);  // over two megabytes
  const config::Experiment experiment = text_experiment(folder.write("long.txt", text));
  const PreparedData prepared = prepare(experiment, folder / "cache", {});
  const Tokenizer tokenizer = load_tokenizer(prepared.tokenizer);
  const std::vector<int32_t> ids = all_ids(prepared.train[0].tokens);
  const std::string part = tokenizer.decode(ids);
  REQUIRE(part == text.substr(0, part.size()));
  REQUIRE(ids == tokenizer.encode_document(part));
}

TEST_CASE("text that changed is prepared anew") {
  tests::TemporaryFolder folder;
  const auto path = folder.write("a.txt", some_text(30));
  const PreparedData before = prepare(text_experiment(path), folder / "cache", {});
  folder.write("a.txt", some_text(31));
  const PreparedData after = prepare(text_experiment(path), folder / "cache", {});
  REQUIRE(before.data_fingerprint != after.data_fingerprint);
  REQUIRE(before.train[0].tokens != after.train[0].tokens);
}

TEST_CASE("the fingerprints of what a config names now are those that a run would get") {
  tests::TemporaryFolder folder;
  const auto path = folder.write("a.txt", some_text(30));
  config::Experiment experiment = text_experiment(path);
  const auto now = [&] { return current_fingerprints(experiment, folder / "cache", {}); };
  const PreparedData before = prepare(experiment, folder / "cache", {});
  REQUIRE(now().data == before.data_fingerprint);
  REQUIRE(now().tokenizer.empty());  // it is trained on that text
  folder.write("a.txt", some_text(31));
  const std::string edited = now().data;
  REQUIRE(edited != before.data_fingerprint);
  REQUIRE(prepare(experiment, folder / "cache", {}).data_fingerprint == edited);

  experiment.tokenizer.path = folder.write("own.json", read_file(before.tokenizer));
  REQUIRE(now().tokenizer == before.tokenizer_fingerprint);
  const PreparedData after = prepare(text_experiment(path), folder / "cache", {});
  folder.write("own.json", read_file(after.tokenizer));
  REQUIRE(now().tokenizer == after.tokenizer_fingerprint);

  std::filesystem::remove(path);
  REQUIRE_THROWS_AS(now(), Error);
}

TEST_CASE("text that is looked at for a table is read once") {
  tests::TemporaryFolder folder;
  const auto path = folder.write("a.txt", some_text(30));
  const timespec past[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), past, 0) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(3100));  // its change is told by its times
  int reads = 0;
  const Progress count = [&](double, const std::string&) { ++reads; };
  const auto now = [&] {
    return current_fingerprints(text_experiment(path), folder / "cache", count).data;
  };
  const std::string first = now();
  const int after_first = std::exchange(reads, 0);
  REQUIRE(now() == first);
  REQUIRE(after_first > 0);
  REQUIRE(reads == 0);
}

TEST_CASE("text that changes while its tokens are written gives none", "[hostile]") {
  tests::TemporaryFolder folder;
  const std::string text = some_text(30), other = some_text(31);
  const auto path = folder.write("a.txt", text);
  for (const std::string changed_in : {"training the tokenizer", "writing training tokens"}) {
    INFO(changed_in);
    folder.write("a.txt", text);
    bool was_changed = false;
    const auto change = [&](double, const std::string& phase) {
      if (phase == changed_in && !was_changed) folder.write("a.txt", other);
      was_changed = was_changed || phase == changed_in;
    };
    const std::string cache = folder / ("cache of " + changed_in);
    CHECK(contains(tests::error_of([&] { prepare(text_experiment(path), cache, change); }),
                   "was changed while it was read"));
    CHECK(was_changed);
    // The text is put back: nothing of the other one is left.
    folder.write("a.txt", text);
    const PreparedData again = prepare(text_experiment(path), cache, {});
    const PreparedData anew = prepare(text_experiment(path), folder / "new cache", {});
    CHECK(again.data_fingerprint == anew.data_fingerprint);
    CHECK(again.tokenizer_fingerprint == anew.tokenizer_fingerprint);
    CHECK(all_ids(again.train[0].tokens) == all_ids(anew.train[0].tokens));
  }
}

TEST_CASE("a tokenizer of one's own is used and must fit the model") {
  tests::TemporaryFolder folder;
  config::Experiment experiment = small_experiment();
  const PreparedData first = prepare(experiment, folder / "cache", {});
  experiment.tokenizer.path = first.tokenizer.string();
  experiment.data.seed = 5;
  const PreparedData second = prepare(experiment, folder / "cache", {});
  REQUIRE(second.tokenizer_fingerprint == first.tokenizer_fingerprint);
  experiment.model.vocab_size = 399;
  REQUIRE(contains(tests::error_of([&] { prepare(experiment, folder / "cache", {}); }),
                   "the tokenizer has 400 ids, but model.vocab_size is 399"));
  experiment.tokenizer.path = (folder / "none.json").string();
  REQUIRE(contains(tests::error_of([&] { prepare(experiment, folder / "cache", {}); }),
                   "there is no file"));
}

TEST_CASE("tokenizers of SentencePiece and tiktoken are prepared as tokenizer json") {
  const tests::TemporaryFolder folder;
  const auto golden = tests::tests_dir() / "golden" / "tokenizers";
  config::Experiment experiment = small_experiment();
  experiment.model.vocab_size = 1000;
  const auto prepared_with = [&](const std::string& kind, const std::string& file) {
    experiment.tokenizer.kind = kind;
    experiment.tokenizer.path = (golden / file).string();
    return prepare(experiment, folder / "cache", {});
  };
  const PreparedData llama2 = prepared_with("sentencepiece", "llama_like.model");
  REQUIRE(load_tokenizer(llama2.tokenizer).fingerprint() == llama2.tokenizer_fingerprint);
  REQUIRE(all_ids(llama2.train[0].tokens)[0] == 1);
  const PreparedData llama3 = prepared_with("tiktoken", "llama3_like.tiktoken");
  REQUIRE(load_tokenizer(llama3.tokenizer).fingerprint() == llama3.tokenizer_fingerprint);
  REQUIRE(all_ids(llama3.train[0].tokens)[0] == 414);
  REQUIRE(contains(tests::error_of([&] { prepared_with("tiktoken", "llama_like.model"); }),
                   "tokenizer.kind is tiktoken, but"));
  REQUIRE(contains(tests::error_of([&] { prepared_with("sentencepiece", "byte_level.json"); }),
                   "set tokenizer.kind to byte_level_bpe or tiktoken"));
  experiment.tokenizer.path = "";
  REQUIRE(contains(tests::error_of([&] { prepare(experiment, folder / "cache", {}); }),
                   "but tokenizer.path is empty"));
}

TEST_CASE("a run's text and tokenizer that are gone are those that the cache knows") {
  tests::TemporaryFolder folder;
  const fs::path text = folder.write("a.txt", some_text(60)), other = folder / "elsewhere";
  const auto prepare_known = [&](const config::Experiment& experiment, const PreparedData& before) {
    const DataFingerprints known = {before.data_fingerprint, before.tokenizer_fingerprint};
    const auto found = find_fingerprints(experiment, folder / "cache", {}, known);
    REQUIRE(found.value().data == known.data);
    return prepare(experiment, folder / "cache", {}, false, known);
  };
  const auto require_same = [](const PreparedData& before, const PreparedData& now) {
    REQUIRE(now.data_fingerprint == before.data_fingerprint);
    REQUIRE(now.tokenizer_fingerprint == before.tokenizer_fingerprint);
    REQUIRE(now.train[0].tokens == before.train[0].tokens);
    REQUIRE(now.train[0].rows == before.train[0].rows);
    REQUIRE(now.evaluation[0].rows == before.evaluation[0].rows);
  };
  config::Experiment experiment = text_experiment(text);
  const PreparedData alone = prepare(experiment, folder / "cache", {});
  config::Experiment given = experiment;
  given.tokenizer.path = folder.write("given.json", read_file(alone.tokenizer)).string();
  const PreparedData with_file = prepare(given, folder / "cache", {});
  config::Experiment mixture = experiment;
  mixture.data.source = "mixture";
  config::SourceConfig source;
  source.path = text.string();
  source.held_out_fraction = 0.1;
  mixture.data.sources["mine"] = source;
  const PreparedData mixed = prepare(mixture, folder / "cache", {});

  fs::rename(text, other);
  fs::remove(given.tokenizer.path);
  const std::string missing = "there is no file or folder '" + text.string();
  REQUIRE(contains(tests::error_of([&] { prepare(experiment, folder / "cache", {}); }), missing));
  require_same(alone, prepare_known(experiment, alone));
  require_same(with_file, prepare_known(given, with_file));
  require_same(mixed, prepare_known(mixture, mixed));
  // A text that was never read, and one whose tokens were removed.
  PreparedData unknown = alone;
  unknown.data_fingerprint = std::string(alone.data_fingerprint.size(), '0');
  REQUIRE(contains(tests::error_of([&] { prepare_known(experiment, unknown); }), missing));
  fs::remove(alone.train[0].tokens);
  REQUIRE(contains(tests::error_of([&] { prepare_known(experiment, alone); }), missing));
  REQUIRE_FALSE(fs::exists(folder / "cache/data" / ("text-" + unknown.data_fingerprint)));
}

TEST_CASE("data that is too small is refused with figures and what would be right") {
  tests::TemporaryFolder folder;
  const auto path = folder.write("a.txt", some_text(30));
  config::Experiment experiment = text_experiment(path);
  const auto error = [&] {
    return tests::error_of([&] { prepare(experiment, folder / "cache", {}); });
  };
  experiment.train.seq_len = 100000;
  REQUIRE(contains(error(), "one row of train.seq_len 100,000 needs 100,001"));
  REQUIRE(contains(error(), "hint: give more text, or set train.seq_len to at most "));
  experiment.train.seq_len = 4000;
  REQUIRE(contains(error(), "held-out part has "));
  REQUIRE(contains(error(), "raise data.held_out_fraction (0.1)"));
  experiment.tokenizer.vocab_size = 20000;
  experiment.model.vocab_size = 20000;
  REQUIRE(contains(error(), "too small for a vocabulary of 20,000"));
}

TEST_CASE("wrong data settings are refused with the reason") {
  tests::TemporaryFolder folder;
  const auto error = [&](const config::Experiment& experiment) {
    return tests::error_of([&] { prepare(experiment, folder / "cache", {}); });
  };
  REQUIRE(contains(error(text_experiment(folder / "none.txt")), "there is no file or folder"));
  REQUIRE(contains(error(text_experiment("")), "data.path is empty"));
  config::Experiment experiment = small_experiment();
  experiment.data.source = "web";
  REQUIRE(contains(error(experiment), "unknown data.source 'web'"));
  experiment = small_experiment();
  experiment.tokenizer.kind = "unigram";
  REQUIRE(contains(error(experiment), "unknown tokenizer.kind 'unigram'"));
  experiment = small_experiment();
  experiment.train.max_steps = INT64_MAX;
  REQUIRE(contains(error(experiment), "need more generated text than"));
}

}  // namespace
}  // namespace forge::data
