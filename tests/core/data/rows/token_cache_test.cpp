#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <functional>

#include "core/base/files.h"
#include "core/data/corpus/corpus.h"
#include "core/data/corpus/document_reader.h"
#include "core/data/rows/prepare.h"
#include "core/data/rows/text_source.h"
#include "core/data/rows/token_cache.h"
#include "core/data/rows/token_file.h"
#include "core/data/stories/toy_stories.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data {
namespace {

using tests::contains;

config::Experiment small_experiment(uint64_t seed) {
  config::Experiment experiment;
  experiment.model.vocab_size = experiment.tokenizer.vocab_size = 300;
  experiment.train.max_steps = 1;
  experiment.train.batch_size = 1;
  experiment.train.seq_len = 64;
  experiment.train.eval_rows = 1;
  experiment.data.seed = seed;
  return experiment;
}

TEST_CASE("prepared data is listed with what it holds and where it is from") {
  tests::TemporaryFolder cache;
  REQUIRE(list_prepared(cache.path()).empty());
  const PreparedData made = prepare(small_experiment(1), cache.path(), {});
  prepare(small_experiment(2), cache.path(), {});
  const std::vector<PreparedFolder> list = list_prepared(cache.path());
  REQUIRE(list.size() == 2);
  const std::string name = "toy_stories-" + made.data_fingerprint.substr(0, 8);
  const PreparedFolder found = find_prepared(cache.path(), name);
  REQUIRE(found.name == name + "/byte_level_bpe-300-v1");
  REQUIRE(found.folder == made.train[0].tokens.parent_path());
  REQUIRE(found.source == "toy_stories");
  REQUIRE(found.train->tokens > 64);
  REQUIRE(found.train->documents == 256);
  REQUIRE(found.bytes > static_cast<int64_t>(fs::file_size(made.train[0].tokens)));
  REQUIRE_FALSE(found.unfinished);
  REQUIRE(find_prepared(cache.path(), found.folder.string()).bytes == found.bytes);
  REQUIRE(contains(tests::error_of([&] { find_prepared(cache.path(), "toy"); }),
                   "is the beginning of several names"));
  REQUIRE(contains(tests::error_of([&] { find_prepared(cache.path(), "x"); }),
                   "no prepared data is called 'x'"));
}

TEST_CASE("data whose preparation failed at once is as old as its folder") {
  const tests::TemporaryFolder cache;
  cache.write("data/text-" + std::string(32, '1') + "/file-00-v1/lock", "");
  REQUIRE(list_prepared(cache.path()).at(0).modified > 0);
}

TEST_CASE("data that a process prepares is listed with that process") {
  const tests::TemporaryFolder cache;
  REQUIRE(list_preparations(cache.path()).empty());
  cache.write("data/text-" + std::string(32, '1') + "/file-00-v1/lock", "");
  const std::filesystem::path lock =
      cache.write("data/text-" + std::string(32, '2') + "/file-00-v1/lock", "");
  REQUIRE(list_preparations(cache.path()).empty());
  const FileLock held = FileLock::acquire(lock);
  held.sign("node3");
  const std::vector<Preparation> list = list_preparations(cache.path());
  REQUIRE(list.size() == 1);
  REQUIRE(list[0].name == "text-22222222/file-00-v1");
  REQUIRE(list[0].holder == "process " + std::to_string(::getpid()) + " on node3");
}

TEST_CASE("a token file that is not whole is listed as none") {
  tests::TemporaryFolder cache;
  const PreparedData made = prepare(small_experiment(1), cache.path(), {});
  fs::resize_file(made.train[0].tokens, 100);
  write_file_atomic(made.train[0].tokens.string() + ".partial", "x");
  const PreparedFolder found = list_prepared(cache.path()).at(0);
  REQUIRE_FALSE(found.train.has_value());
  REQUIRE(found.evaluation.has_value());
  REQUIRE(found.unfinished);
}

std::string stories(size_t bytes) {
  std::string text;
  for (uint64_t i = 0; text.size() < bytes; ++i) {
    text += toy_story(i % 300, Split::training, i % 300) + "\n\n";
  }
  return text;
}

/// Starts a process of its own for an action; the status 0 is a good end.
pid_t start(const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    action();
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

int status_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST_CASE("tokens are the same bytes though their writers were killed") {
  tests::TemporaryFolder folder;
  const Tokenizer tokenizer(initial_vocabulary());
  const auto path = folder.write("a.txt", stories(6 * chunk_bytes));
  const TextRange text = all_text(path, {config::DocumentKind::block, "", ""});
  const auto write = [&](const std::string& name, const Progress& progress) {
    TokenFileWriter writer(folder / name, tokenizer.vocab_size(), tokenizer.fingerprint(), "test");
    write_text(text, tokenizer, progress, writer, 1);
    writer.finish();
  };
  write("whole.tokens", {});
  for (const double deadline : {0.3, 0.7}) {
    const int status = status_of(start([&] {
      write("killed.tokens", [&](double fraction, const std::string&) {
        if (fraction > deadline) ::kill(::getpid(), SIGKILL);
      });
    }));
    REQUIRE(WIFSIGNALED(status));
    REQUIRE(WTERMSIG(status) == SIGKILL);
    REQUIRE_FALSE(std::filesystem::exists(folder / "killed.tokens"));
    REQUIRE(std::filesystem::exists(folder / "killed.tokens.partial.json"));
  }
  double first = 0;
  write("killed.tokens", [&](double fraction, const std::string&) {
    if (first == 0) first = fraction;
  });
  REQUIRE(first > 0.6);  // not from the beginning
  REQUIRE(read_file(folder / "killed.tokens") == read_file(folder / "whole.tokens"));
  REQUIRE_FALSE(std::filesystem::exists(folder / "killed.tokens.partial"));
}

TEST_CASE("a tokenizer's path that is no file is told from one that is not there", "[hostile]") {
  const tests::TemporaryFolder folder;
  config::TokenizerConfig tokenizer;
  const auto refusal = [&](const std::string& name) {
    tokenizer.path = (folder / name).string();
    return tests::error_of([&] { tokenizer_folder_name(tokenizer); });
  };
  CHECK(contains(refusal("missing"), "there is no file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(contains(refusal("pipe"), "it is a pipe, not a file"));
  std::filesystem::create_symlink("/dev/null", folder / "device");
  CHECK(contains(refusal("device"), "not a file"));
  CHECK(contains(refusal("."), "it is a folder, not a file"));
}

TEST_CASE("of several processes that prepare the same data one does the work", "[slow]") {
  tests::TemporaryFolder folder;
  config::Experiment experiment;
  experiment.data.source = "text";
  experiment.data.path = folder.write("a.txt", stories(200000)).string();
  experiment.model.vocab_size = experiment.tokenizer.vocab_size = 300;
  experiment.train.seq_len = 32;
  experiment.train.max_steps = 1;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start([&] {
      bool worked = false;
      prepare(experiment, folder / "cache", [&](double, const std::string& phase) {
        worked = worked || phase == "writing training tokens";
      });
      if (worked) folder.write("worked-" + std::to_string(::getpid()), "");
    }));
  }
  for (const pid_t child : children) REQUIRE(status_of(child) == 0);
  int workers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().filename().string().find("worked-") == 0) ++workers;
  }
  REQUIRE(workers == 1);
  const PreparedData prepared = prepare(experiment, folder / "cache", {});
  TokenFile(prepared.train[0].tokens).verify_hash();
}

TEST_CASE("what forge did not make in the cache's folder is somebody else's", "[hostile]") {
  const tests::TemporaryFolder cache;
  const std::string ours = "data/text-" + std::string(32, 'a') + "/byte_level_bpe-300-v1/";
  cache.write("data/wiki/raw/part-000.parquet", "x");
  cache.write("data/text-0123/bpe/evaluation.tokens", "x");
  cache.write("data/text-" + std::string(32, 'a') + "/notes/a.txt", "x");
  CHECK(list_prepared(cache.path()).empty());
  for (const char* file : {"tokenizer.json", "lock", "train.tokens.partial"})
    cache.write(ours + file, "x");
  REQUIRE(list_prepared(cache.path()).size() == 1);
  CHECK_FALSE(list_prepared(cache.path())[0].has_other_files);
  cache.write(ours + "notes.txt", "x");
  CHECK(list_prepared(cache.path()).at(0).has_other_files);
}

}  // namespace
}  // namespace forge::data
