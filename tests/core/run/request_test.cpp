#include "core/run/request.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/data/rows/token_file.h"
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

worker::BackendInfo backend_that(const std::string& supports) {
  worker::BackendInfo info;
  info.hello.backend = "fake";
  info.environment.device_type = "cpu";
  if (!supports.empty())
    info.supports = std::get<worker::Supports>(worker::event_from_line(supports));
  return info;
}

const nlohmann::json asked_experiment = {{"optimizer", {{"type", "sgd"}}},
                                         {"train", {{"z", nullptr}}}};

TEST_CASE("a value that a backend lacks is refused at the place of the key", "[backend]") {
  const auto source = std::make_shared<SourceText>(SourceText{"c.yaml", "", "type: sgd", 1});
  config::Origins origins;
  origins["optimizer.type"].set_by = {"config", "sgd", make_span(source, 1, 7), ""};
  const std::string message = error_of([&] {
    require_supported(asked_experiment,
                      origins,
                      backend_that(R"({"event":"supports","jobs":[],)"
                                   R"("config":{"optimizer.type":["adamw","lion"]}})"));
  });
  CHECK(contains(message, "backend fake cannot do optimizer.type: sgd on cpu"));
  CHECK(contains(message, "c.yaml:1:7"));
  CHECK(contains(message, "it can do adamw, lion"));
}

TEST_CASE("what a backend does not speak of is let through", "[backend]") {
  const auto accepts = [](const std::string& supports) {
    return error_of([&] { require_supported(asked_experiment, {}, backend_that(supports)); })
        .empty();
  };
  CHECK(accepts(""));
  CHECK(accepts(R"({"event":"supports","jobs":[]})"));
  CHECK(accepts(R"({"event":"supports","jobs":[],"config":{"optimizer.type":["sgd"]}})"));
  CHECK(accepts(R"({"event":"supports","jobs":[],"config":{"train.z":[null]}})"));
  CHECK(accepts(R"({"event":"supports","jobs":[],"config":{"no.such.key":["a"],"":[1]}})"));
  CHECK_FALSE(accepts(R"({"event":"supports","jobs":[],"config":{"train.z":[false]}})"));
}

TEST_CASE("a backend that does not speak of several processes gets a single one", "[backend]") {
  config::Experiment experiment;
  const auto source = std::make_shared<SourceText>(SourceText{"c.yaml", "", "processes: 2", 1});
  config::Origins origins;
  origins["parallel.processes"].set_by = {"config", "2", make_span(source, 1, 12), ""};
  const auto refusal = [&](const std::string& supports) {
    return error_of([&] { require_processes(experiment, origins, backend_that(supports)); });
  };
  const std::string plain = R"({"event":"supports","jobs":[],"config":{}})";
  const std::string able = R"({"event":"supports","jobs":[],"config":{"parallel":[true]}})";
  for (const std::string& supports : {std::string(), plain, able}) CHECK(refusal(supports).empty());
  experiment.parallel.processes.count = 2;
  for (const std::string& supports : {std::string(), plain}) {
    CHECK(contains(refusal(supports),
                   "backend fake trains by a single process on cpu, and parallel.processes is 2"));
    CHECK(contains(refusal(supports), "c.yaml:1:12"));
  }
  CHECK(refusal(able).empty());
  // It limits no value of the section of that name.
  const nlohmann::json asked = {{"parallel", {{"processes", 2}}}};
  CHECK(error_of([&] { require_supported(asked, {}, backend_that(able)); }).empty());
}

TEST_CASE("a device that the backend does not run on is refused before there is a run",
          "[backend][device]") {
  worker::BackendInfo backend = backend_that("");
  for (const char* device : {"", "auto", "cpu", "cpu:0"})
    CHECK(error_of([&] { require_device(device, backend); }).empty());
  for (const char* device : {"CPU", "cuda", "cuda:-1", "cpu:", "cpu:x", "GPU", "../x"}) {
    INFO(device);
    const std::string message = error_of([&] { require_device(device, backend); });
    CHECK(contains(message, "backend fake runs on cpu here, and not on '" + std::string(device)));
    CHECK(contains(message, "--device is auto, cpu, cuda or cuda:N"));
  }
  backend.environment.device_type = "cuda";
  CHECK(error_of([&] { require_device("cuda:1", backend); }).empty());
}

TEST_CASE("a job that a backend does not do is refused", "[backend]") {
  const worker::BackendInfo info =
      backend_that(R"({"event":"supports","jobs":["describe","train"]})");
  require_job(worker::Job::train, info);
  require_job(worker::Job::generate, backend_that(""));
  const std::string message = error_of([&] { require_job(worker::Job::generate, info); });
  CHECK(contains(message, "backend fake cannot do the job generate"));
  CHECK(contains(message, "it does describe, train"));
}

TEST_CASE("a job that reads a model asks nothing of how it was trained", "[backend]") {
  config::Experiment trained;
  trained.train.precision = model::Precision::float64;
  const auto fault = [&](const std::string& limits) {
    const worker::BackendInfo info =
        backend_that(R"({"event":"supports","jobs":["evaluate"],"config":)" + limits + "}");
    return error_of([&] { require_readable(worker::Job::evaluate, trained, info); });
  };
  CHECK(fault(R"({"optimizer.type":["none"],"data.order":["none"]})").empty());
  CHECK(contains(fault(R"({"model.layers":["mamba2"]})"), "cannot do model.layers: attention"));
  CHECK(contains(fault(R"({"train.precision":["float32"]})"), "it can do float32"));
  const worker::BackendInfo trainer = backend_that(R"({"event":"supports","jobs":["train"]})");
  CHECK(contains(error_of([&] { require_readable(worker::Job::evaluate, trained, trainer); }),
                 "cannot do the job evaluate"));
}

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

TEST_CASE("a run that waited does not begin on tokens that were damaged meanwhile",
          "[run][hostile]") {
  const TemporaryFolder folder;
  const fs::path file = folder / "train.tokens";
  {
    data::TokenFileWriter writer(file, 100, hash_hex("a tokenizer"));
    const std::vector<int32_t> ids = {1, 2, 3, 4, 5, 6, 7, 8};
    writer.append(ids.data(), ids.size());
    writer.finish();
  }
  worker::Request request;
  request.train_tokens.emplace_back();
  request.train_tokens[0].path = file.string();
  request.evaluation_tokens.emplace_back();  // of a task: it has no file
  RunRecord record;
  CHECK_NOTHROW(require_planned_inputs(record, request));
  std::string bytes = read_file(file);
  std::swap(bytes.end()[-2], bytes.end()[-4]);
  write_file_atomic(file, bytes);
  CHECK(contains(error_of([&] { require_planned_inputs(record, request); }),
                 "the run's tokens cannot be used"));
}

TEST_CASE("a run that waited does not begin with other inputs than it was planned with",
          "[run][hostile]") {
  const TemporaryFolder folder;
  const auto tokens = [&](const std::string& name, std::vector<int32_t> ids) {
    data::TokenFileWriter writer(folder / name, 100, hash_hex("a tokenizer"));
    writer.append(ids.data(), ids.size());
    writer.finish();
    return worker::TokenSource{(folder / name).string(), 2};
  };
  worker::Request request;
  request.train_tokens = {tokens("train", {1, 2, 3, 4, 5})};
  request.evaluation_tokens = {tokens("evaluation", {6, 7, 8, 9, 10})};
  request.answer_rows = 2;
  RunRecord record;
  record.inputs_hash = inputs_hash(request);
  // The same rows in another folder are the same.
  fs::rename(folder / "train", folder / "moved");
  request.train_tokens[0].path = (folder / "moved").string();
  CHECK_NOTHROW(require_planned_inputs(record, request));
  request.experiment = nlohmann::json::parse(
      R"({"model":{"blocks":{"own":{"described":{"weights":[{"init":{"kind":"normal"}}]}}}}})");
  record.inputs_hash = inputs_hash(request);
  const auto is_refused = [&](const auto& edit) {
    worker::Request edited = request;
    edit(edited);
    const std::string error = error_of([&] { require_planned_inputs(record, edited); });
    return contains(error, "of its request.json are not those that it was planned with");
  };
  CHECK(is_refused([](auto& r) { r.evaluation_tokens[0].path = r.train_tokens[0].path; }));
  CHECK(is_refused([](auto& r) { r.evaluation_tokens[0].rows = 1; }));
  CHECK(is_refused([](auto& r) { r.train_tokens[0].first_row = 1; }));
  CHECK(is_refused([](auto& r) { r.train_tokens[0].pad_id = 3; }));
  CHECK(is_refused([](auto& r) { r.train_tokens[0].document_start = 3; }));
  CHECK(is_refused([](auto& r) { r.validation_tokens = r.train_tokens; }));
  CHECK(is_refused([](auto& r) { r.answer_rows = 1; }));
  CHECK(is_refused([](auto& r) {
    r.experiment["model"]["blocks"]["own"]["described"]["weights"][0]["init"]["kind"] = "constant";
  }));
  CHECK(is_refused([&](auto&) { fs::remove(folder / "moved"); }));
  // Older runs did not record their rows.
  record.inputs_hash.clear();
  CHECK_NOTHROW(require_planned_inputs(record, request));
}

TEST_CASE("a run goes on when a longer one has made the tokens of generated text more",
          "[run][hostile]") {
  const TemporaryFolder folder;
  const auto write = [&](std::vector<int32_t> ids) {
    data::TokenFileWriter writer(folder / "train", 100, hash_hex("a tokenizer"));
    writer.append(ids.data(), ids.size());
    writer.finish();
  };
  worker::Request request;
  request.train_tokens = {worker::TokenSource{(folder / "train").string(), 2}};
  request.train_tokens[0].name = "tales";
  request.experiment = {
      {"data", {{"source", "mixture"}, {"sources", {{"tales", {{"source", "toy_stories"}}}}}}},
      {"train", {{"seq_len", 2}}}};
  write({1, 2, 3, 4, 5});
  RunRecord record;
  record.inputs_hash = inputs_hash(request);
  const auto error = [&] { return error_of([&] { require_planned_inputs(record, request); }); };
  write({1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(error().empty());
  write({1, 2, 3, 4, 9, 6, 7, 8, 9});
  CHECK(contains(error(), "are not those that it was planned with"));
  write({1, 2, 3});
  CHECK_FALSE(error().empty());
  // A text is what it is.
  for (const char* kind : {"text", "jsonl"}) {
    CAPTURE(kind);
    request.experiment["data"]["sources"]["tales"]["source"] = kind;
    write({1, 2, 3, 4, 5});
    record.inputs_hash = inputs_hash(request);
    CHECK(error().empty());
    write({1, 2, 3, 4, 5, 6, 7, 8, 9});
    CHECK(contains(error(), "are not those that it was planned with"));
  }
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
