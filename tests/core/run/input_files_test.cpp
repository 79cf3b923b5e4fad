// Files that a run reads and that somebody edits while it trains.

#include "core/run/input_files.h"

#include <fcntl.h>

#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/data/rows/token_file.h"
#include "core/run/event_log.h"
#include "core/run/host.h"
#include "core/run/plan.h"
#include "tests/core/run/supervised_scene.h"

namespace forge::run {
namespace {

using Names = std::vector<std::string>;

void write_tokens(const fs::path& path, const std::vector<int32_t>& ids) {
  data::TokenFileWriter writer(path, 100, hash_hex("a tokenizer"));
  writer.append(ids.data(), ids.size());
  writer.finish();
}

/// As who opens a file and writes into it: it stays the same file.
void write_in_place(const fs::path& path, const std::string& content) {
  write_all(FileDescriptor(::open(path.c_str(), O_WRONLY | O_TRUNC)).get(), content, path);
}

/// Its first id, behind the header, becomes another.
void damage(const fs::path& path) {
  constexpr size_t header_bytes = 72;
  std::string content = read_file(path);
  content[header_bytes] = static_cast<char>(content[header_bytes] + 1);
  write_in_place(path, content);
}

void set_time(const fs::path& path, std::chrono::hours distance) {
  fs::last_write_time(path, fs::last_write_time(path) + distance);
}

/// A program with a file of its own, and two files of tokens.
struct Inputs {
  Inputs() {
    write_file_atomic(folder / "net.py", "one\n");
    write_file_atomic(folder / "worker.py", "run\n");
    make_directories(folder / "data");
    write_tokens(folder / "data" / "train.tokens", {1, 2, 3, 4, 5});
    write_tokens(folder / "data" / "evaluation.tokens", {6, 7, 8, 9, 10});
    external.command = {"python3", "worker.py", "--net=net.py"};
    external.working_directory = folder.path().string();
    request.train_tokens = {{(folder / "data" / "train.tokens").string(), 2}};
    request.evaluation_tokens = {{(folder / "data" / "evaluation.tokens").string(), 2}};
  }
  TemporaryFolder folder;
  config::ExternalConfig external;
  worker::Request request;
};

TEST_CASE("files that changed since an attempt began are told by their names", "[run][hostile]") {
  const Inputs scene;
  const InputFiles files(scene.external, scene.request);
  CHECK(files.changed().empty());
  write_file_atomic(scene.folder / "net.py", "two\n");
  damage(scene.folder / "data" / "evaluation.tokens");
  CHECK(files.changed() == Names{"net.py", "data/evaluation.tokens"});
}

TEST_CASE("tokens that were edited and given their old time have changed", "[run][hostile]") {
  const Inputs scene;
  const fs::path tokens = scene.folder / "data" / "train.tokens";
  const InputFiles files(scene.external, scene.request);
  const fs::file_time_type before = fs::last_write_time(tokens);
  damage(tokens);
  fs::last_write_time(tokens, before);
  CHECK(files.changed() == Names{"data/train.tokens"});
}

TEST_CASE("a file that was written to and has its content again says so", "[run][hostile]") {
  const Inputs scene;
  const InputFiles files(scene.external, scene.request);
  set_time(scene.folder / "net.py", std::chrono::hours(1));
  set_time(scene.folder / "data" / "train.tokens", std::chrono::hours(1));
  const std::string same = " (written to; the content is what it was)";
  CHECK(files.changed() == Names{"net.py" + same, "data/train.tokens" + same});
}

TEST_CASE("tokens of generated text that grew have not changed", "[run]") {
  Inputs scene;
  scene.request.experiment = {{"data", {{"source", "stories"}}}, {"train", {{"seq_len", 2}}}};
  scene.request.train_tokens[0].rows = 2;
  const InputFiles files(scene.external, scene.request);
  const fs::path tokens = scene.folder / "data" / "train.tokens";
  write_tokens(tokens, {1, 2, 3, 4, 5, 6, 7});
  CHECK(files.changed().empty());
  write_tokens(tokens, {1, 2, 3, 9, 5, 6, 7});
  CHECK(files.changed() == Names{"data/train.tokens"});
}

TEST_CASE("a file that is gone, linked or given other rights has not changed", "[run]") {
  const Inputs scene;
  const InputFiles files(scene.external, scene.request);
  fs::remove(scene.folder / "data" / "train.tokens");
  fs::create_hard_link(scene.folder / "net.py", scene.folder / "backup");
  fs::permissions(scene.folder / "worker.py", fs::perms::owner_all);
  CHECK(files.changed().empty());
}

TEST_CASE("a file that was edited and restored since recorded states says so", "[run][hostile]") {
  const Inputs scene;
  const auto states = InputFiles(scene.external, scene.request).states();
  CHECK(states.size() == 4);
  const auto changed = [&] {
    return InputFiles(scene.external, scene.request).changed_since(states);
  };
  CHECK(changed().empty());
  fs::create_hard_link(scene.folder / "worker.py", scene.folder / "backup");
  CHECK(changed().empty());
  write_file_atomic(scene.folder / "net.py", "two\n");
  write_file_atomic(scene.folder / "net.py", "one\n");
  damage(scene.folder / "data" / "train.tokens");
  const std::string same = " (written to; the content is what it was)";
  CHECK(changed() == Names{"net.py" + same, "data/train.tokens" + same});
  CHECK(InputFiles(scene.external, scene.request).changed_since({{"/other", "1"}}).empty());
}

TEST_CASE("a supervisor names the files that were edited after the one before was killed",
          "[run][supervisor][hostile]") {
  const Inputs files;
  RunInputs inputs = small_inputs();
  inputs.train_tokens = files.request.train_tokens;
  inputs.evaluation_tokens = files.request.evaluation_tokens;
  for (const bool is_same_host : {true, false}) {
    SupervisedScene scene({}, inputs);
    AttemptStarted killed;
    killed.host = is_same_host ? host_name() : "elsewhere";
    killed.inputs = InputFiles({}, files.request).states();
    EventLog(scene.folder.events_file()).append(killed, 1);
    set_time(files.folder / "data" / "train.tokens", std::chrono::hours(1));
    scene.launcher.add({then(greeting(), {Says{lines::finished(true)}, Exits{}}), {}});
    CHECK(scene.supervise() == supervised_completed);
    Names changed;
    for_each_event(scene.folder.events_file(), [&](const StoredEvent& stored) {
      if (stored.started) changed = stored.started->changed_inputs;
    });
    CHECK(changed.size() == (is_same_host ? 1 : 0));
    CHECK_FALSE(unended_attempt(scene.folder.events_file()));
  }
}

/// What a supervised run says whose tokens are edited while it trains.
nlohmann::json end_of_run(const Inputs& files, const std::function<void()>& edit) {
  RunInputs inputs = small_inputs();
  inputs.train_tokens = files.request.train_tokens;
  inputs.evaluation_tokens = files.request.evaluation_tokens;
  SupervisedScene scene({}, inputs);
  scene.launcher.add(
      {then(greeting(),
            {Says{lines::train(1)}, Does{edit}, Saves{1}, Says{lines::finished(true)}, Exits{}}),
       {}});
  CHECK(scene.supervise() == supervised_completed);
  return scene.last_event();
}

TEST_CASE("a run whose tokens are edited while it trains is completed and says so",
          "[run][supervisor][hostile]") {
  const Inputs files;
  CHECK_FALSE(end_of_run(files, [] {}).contains("changed_inputs"));
  const auto edit = [&] { damage(files.folder / "data" / "evaluation.tokens"); };
  CHECK(end_of_run(files, edit).at("changed_inputs").get<Names>() ==
        Names{"data/evaluation.tokens"});
}

}  // namespace
}  // namespace forge::run
