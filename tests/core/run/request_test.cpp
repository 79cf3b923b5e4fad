#include "core/run/request.h"
#include "core/run/inputs_hash.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/run/needed_checkpoints.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/odd_json.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using namespace tests;

TEST_CASE("a run goes on only with the backend that it was begun with", "[run][renew]") {
  const TemporaryFolder runs;
  const RunRecord record = new_run(runs.path()).record();
  worker::BackendInfo backend = small_inputs().backend;
  REQUIRE(error_of([&] { require_same_backend(record, backend); }) == "");
  backend.hello.numerics_version = 2;
  REQUIRE(tests::contains(error_of([&] { require_same_backend(record, backend); }),
                          "its numerics version is 1 and would be 2"));
  backend = small_inputs().backend;
  backend.environment.threads = 1;
  REQUIRE(tests::contains(error_of([&] { require_same_backend(record, backend); }),
                          "its number of CPU threads is 2 and would be 1"));
  backend = small_inputs().backend;
  backend.environment.device_type = "cuda";
  REQUIRE(tests::contains(error_of([&] { require_same_backend(record, backend); }),
                          "its device is cpu and would be cuda"));
}

TEST_CASE("a renewed request names the folder and the token files of now", "[run][renew]") {
  const TemporaryFolder runs;
  const RunFolder folder = new_run(runs.path());
  const RunFolder moved(runs / "elsewhere");
  rename_path(folder.path(), moved.path());
  data::PreparedData data;
  data.data_fingerprint = "d";
  data.tokenizer_fingerprint = "t";
  data.train = {{"", 1, "/new/train.tokens", 7}};
  data.evaluation = {{"", 1, "/new/evaluation.tokens", 2}};
  refresh_request(moved, read_request(moved), data);
  const worker::Request request = read_request(moved);
  REQUIRE(request.run_dir == moved.path().string());
  REQUIRE(request.train_tokens[0].path == "/new/train.tokens");
  REQUIRE(request.train_tokens[0].rows == 7);
  REQUIRE(request.identity == moved.record().key);
  data.data_fingerprint = "other";
  REQUIRE(tests::contains(error_of([&] { refresh_request(moved, request, data); }),
                          "its data is d and would be other"));
}

TEST_CASE("a run whose config was changed does not go on", "[run][renew]") {
  const TemporaryFolder runs;
  const RunFolder folder = new_run(runs.path());
  const worker::Request request = read_request(folder);
  nlohmann::json config = folder.config();
  config["train"]["max_steps"] = 4;
  write_file_atomic(folder.config_file(), config.dump());
  data::PreparedData data;
  data.data_fingerprint = "d";
  data.tokenizer_fingerprint = "t";
  REQUIRE(tests::contains(error_of([&] { refresh_request(folder, request, data); }),
                          "is not the config that run"));
}

TEST_CASE("an imported model has nothing to go on with", "[run][renew]") {
  const TemporaryFolder runs;
  const RunFolder folder = new_run(runs.path());
  remove_tree(folder.request_file());
  REQUIRE(tests::contains(error_of([&] { read_request(folder); }), "request.json' is missing"));
  RunRecord record = folder.record();
  record.imported_from = "/models/llama";
  write_file_atomic(folder.record_file(), to_json(record).dump());
  REQUIRE(tests::contains(error_of([&] { read_request(folder); }), "is a model that was imported"));
  write_file_atomic(folder.request_file(), "half");
  REQUIRE(tests::contains(error_of([&] { read_request(folder); }), "request.json': "));
}

/// A run that another user's request lets begin from a checkpoint of a run of this user's.
struct OthersBeginning {
  OthersBeginning() {
    fs::permissions(runs.path(), fs::perms::all);
    checkpoint = save_checkpoint(origin.checkpoints(), 5);
  }
  /// Another user writes the request of the run.
  void write_by_other() const {
    fs::permissions(run.path(), fs::perms::all);
    as_other_user([&] {
      const std::string text = read_file(run.request_file());
      remove_tree(run.request_file());
      write_file_atomic(run.request_file(), text);
    });
  }
  std::string error() const {
    return error_of([&] { require_own_beginning(run, checkpoint); });
  }

  TemporaryFolder runs, elsewhere;
  RunFolder origin = new_run(elsewhere.path());
  RunFolder run = new_run(runs.path());
  fs::path checkpoint;
};

TEST_CASE("a run goes on from no checkpoint that the writer of its request may not have read",
          "[run][hostile]") {
  OthersBeginning scene;
  CHECK(scene.error().empty());
  if (::geteuid() == 0) {  // only root can be two users
    scene.write_by_other();
    const std::string error = scene.error();
    INFO(error);
    CHECK(contains(error, "', which is not of "));
    CHECK(contains(error, ", who wrote that\nhint: 'forge run CONFIG --continue RUN --force'"));
    const worker::Request request = read_request(scene.run);
    CHECK(contains(error_of([&] {
                     worker::Request other = request;
                     other.resume_from = scene.checkpoint.string();
                     data::PreparedData data;
                     data.data_fingerprint = scene.run.record().identity.data_fingerprint;
                     data.tokenizer_fingerprint = scene.run.record().identity.tokenizer_fingerprint;
                     refresh_request(scene.run, other, data);
                   }),
                   ", who wrote that"));
    for (const fs::directory_entry& file : fs::directory_iterator(scene.checkpoint))
      REQUIRE(::chown(file.path().c_str(), 65534, 65534) == 0);
    CHECK(scene.error().empty());
  }
}

TEST_CASE("a request that others may have written begins no run elsewhere", "[run][hostile]") {
  OthersBeginning scene;
  fs::permissions(scene.run.request_file(), fs::perms(0664));
  CHECK(contains(scene.error(), "and others may have written that to '"));
  CHECK(contains(scene.error(), "'chmod go-w "));
  scene.checkpoint = save_checkpoint(scene.run.checkpoints(), 5);
  CHECK(scene.error().empty());
}

TEST_CASE("no link leads to the checkpoint that a run goes on from", "[run][hostile]") {
  OthersBeginning scene;
  const fs::path away = scene.elsewhere / "away";
  SECTION("its folder") {
    fs::rename(scene.checkpoint, away);
    fs::create_directory_symlink(away, scene.checkpoint);
  }
  SECTION("the folder of all") {
    fs::rename(scene.origin.checkpoints(), away);
    fs::create_directory_symlink(away, scene.origin.checkpoints());
  }
  SECTION("a file") {
    const fs::path file = fs::directory_iterator(scene.checkpoint)->path();
    fs::rename(file, away);
    fs::create_symlink(away, file);
  }
  CHECK(contains(scene.error(), "', to which a link leads"));
}

TEST_CASE("nobody else may write to a request, whatever the umask is", "[run][hostile]") {
  const TemporaryFolder runs;
  const mode_t before = ::umask(0);
  const RunFolder run = new_run(runs.path());
  ::umask(before);
  CHECK((fs::status(run.request_file()).permissions() & fs::perms(0022)) == fs::perms::none);
}

TEST_CASE("a hint says where the command that writes a request anew lacks its options", "[run]") {
  const TemporaryFolder folder;
  const RunFolder run = new_run(folder.path());
  remove_tree(run.request_file());
  const auto hint_of = [&](const std::string& command) {
    RunRecord record = run.record();
    record.command = command;
    record.workspace = "/workspace";
    write_file_atomic(run.record_file(), to_json(record).dump());
    return error_of([&] { read_request(run); });
  };
  CHECK(contains(hint_of("forge run train_x --set external.command=x"),
                 "'forge run train_x' writes it anew, with the options that the run was made with "
                 "('forge runs show " +
                     run.id() + "' prints its command)"));
  CHECK(ends_with(hint_of("forge run train_x"), "'forge run train_x' writes it anew"));
}

TEST_CASE("a hint repeats a command that was typed only where it can start nothing else",
          "[run][hostile]") {
  const TemporaryFolder folder;
  const RunFolder run = new_run(folder.path());
  remove_tree(run.request_file());
  std::string workspace = "/workspace";
  const auto hint_of = [&](const std::string& command) {
    RunRecord record = run.record();
    record.command = command;
    record.workspace = workspace;
    write_file_atomic(run.record_file(), to_json(record).dump());
    const std::string error = error_of([&] { read_request(run); });
    INFO(error);
    const size_t begin = error.find("hint: '") + 7;
    return error.substr(begin, error.find("' writes it anew") - begin);
  };
  for (const char* plain :
       {"forge run train_x",
        "forge run train_x train_y --seed 1,2 --profile quick",
        "forge run train_x --set train.max_steps=40 --set model.hidden_size=8 --threads 2"})
    CHECK(hint_of(plain) == plain);
  for (const char* other :
       {"forge run train_x --set backend=external --set external.command=[\"sh\",\"-c\",\"x\"]",
        "forge run train_x --set external.command=x",
        "forge run train_x --set backend=theirs",
        "forge run train_x --set model.blocks.a.file=x",
        "forge run train_x --backend theirs",
        "forge run -p theirs train_x",
        "forge -p theirs run train_x",
        "forge run --plan theirs",
        "forge run theirs/x",
        "forge run train_x --force",
        "forge run train_x --seed",
        "forge run train_x\t--plan=x",
        "forge run train_x ~/x",
        "forge run 'train_x --plan x'",
        "forge  run train_x",
        "forge run"})
    CHECK(hint_of(other) == "forge run train_x");
  workspace = "";  // of a run that was imported
  CHECK(hint_of("forge run train_x --seed 1") == "forge run train_x");
}

TEST_CASE("a request that holds anything at all is read, or refused in words", "[run][hostile]") {
  const TemporaryFolder folder;
  const RunFolder run = new_run(folder.path());
  const std::string record = read_file(run.record_file());
  nlohmann::json request = nlohmann::json::parse(read_file(run.request_file()));
  nlohmann::json& experiment = request["experiment"];
  experiment["external"] = {{"command", {"a"}}, {"working_directory", "b"}};
  experiment["data"]["sources"] = {{"one", {{"weight", 0.5}, {"path", "p"}}}};
  experiment["model"]["blocks"] = {
      {"own", {{"source", "x"}, {"described", {{"weights", {{"w", 1}}}}}}}};
  int read = 0, refused = 0;
  for_each_odd(request, [&](const nlohmann::json& odd, const std::string& words) {
    INFO(words);
    write_file_atomic(run.record_file(), record);
    // With an identity that goes with it: a stranger can make that, too.
    nlohmann::json own = odd;
    error_of([&] {
      rewrite_config(run, odd.is_object() && odd.contains("experiment") ? odd["experiment"] : odd);
      if (own.is_object()) own["identity"] = run.record().key;
    });
    write_file_atomic(run.request_file(), own.dump() + "\n");
    REQUIRE_NOTHROW(needed_checkpoints(folder.path()));
    REQUIRE_NOTHROW(error_of([&] { inputs_hash(read_request(run)); }).empty() ? ++read : ++refused);
  });
  CHECK(read > 0);
  CHECK(refused > 0);
}

}  // namespace
}  // namespace forge::run
