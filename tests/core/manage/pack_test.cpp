#include "core/manage/pack.h"
#include "core/base/archive.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/model/weights/checkpoint.h"
#include "core/project/workspace_id.h"
#include "core/run/annotations.h"
#include "core/run/moved_files.h"
#include "core/run/runs_dir.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::manage {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

using namespace tests;

void save_values(const run::RunFolder& folder, int64_t step) {
  const std::vector<float> values(64, float(step));
  const weights::TensorView tensor{weights::Dtype::f32,
                                   {64},
                                   reinterpret_cast<const std::byte*>(values.data()),
                                   values.size() * sizeof(float)};
  weights::CheckpointState state;
  state.step = step;
  weights::write_checkpoint(
      folder.checkpoints(), state, {{"w", tensor}}, {{"w.first_moment", tensor}});
}

/// A run with two checkpoints, and a pack of it.
struct Scene {
  explicit Scene(bool completed = true, bool checkpoints = false)
      : run(completed ? make_completed_run(there.path(), {})
                      : make_stopped_run(there.path(), {}, 9)) {
    save_values(run, 8);
    save_values(run, 9);
    PackOptions options;
    options.file = there / "run.pack";
    options.checkpoints = checkpoints;
    options.forge_version = "1";
    options.templates = {{"configs/x.yaml", there.write("x.yaml", "a: 1\n")}};
    packed = pack_run(run, options);
  }
  TemporaryFolder there, here;
  run::RunFolder run;
  Packed packed;
};

TEST_CASE("a packed run is imported in elsewhere with the weights of its last checkpoint",
          "[upkeep][pack]") {
  const Scene scene;
  REQUIRE(scene.packed.notes.size() == 1);
  const ImportResult imported = import_packed_run(scene.there / "run.pack", scene.here.path());
  REQUIRE(imported.created);
  REQUIRE(imported.folder.id() == scene.run.id());
  REQUIRE(imported.folder.state() == run::RunState::completed);
  REQUIRE(read_file(imported.folder.events_file()) == read_file(scene.run.events_file()));
  const auto checkpoints = weights::list_checkpoints(imported.folder.checkpoints());
  REQUIRE(checkpoints.size() == 1);
  REQUIRE(weights::read_checkpoint_state(checkpoints[0]).step == 9);
  REQUIRE(fs::exists(checkpoints[0] / weights::weights_file));
  REQUIRE_FALSE(fs::exists(checkpoints[0] / weights::optimizer_file));
  REQUIRE_FALSE(import_packed_run(scene.there / "run.pack", scene.here.path()).created);
  REQUIRE(run::list_runs(scene.here.path()).size() == 1);
}

TEST_CASE("a link in the place of the folder that a pack is unpacked in leads nowhere",
          "[upkeep][import][hostile]") {
  const Scene scene;
  const TemporaryFolder elsewhere;
  bool exchanged = false;
  const auto exchange = [&](size_t, size_t) {  // while the pack is unpacked
    for (const fs::path& entry : folder_entries(scene.here.path())) {
      if (exchanged || !contains(entry.string(), ".tmp-import-")) continue;
      CHECK((fs::status(entry).permissions() & (fs::perms::group_all | fs::perms::others_all)) ==
            fs::perms::none);
      fs::rename(entry, scene.here / "away");
      fs::create_directory_symlink(elsewhere.path(), entry);
      exchanged = true;
    }
  };
  const ImportResult imported =
      import_packed_run(scene.there / "run.pack", scene.here.path(), exchange);
  REQUIRE(exchanged);
  CHECK(fs::is_empty(elsewhere.path()));
  CHECK(imported.folder.state() == run::RunState::completed);
}

TEST_CASE("a run that is imported belongs to the workspace that it comes to", "[upkeep][pack]") {
  const TemporaryFolder there, here;
  MadeRun made;
  made.workspace = there.path().string();
  const run::RunFolder run = make_completed_run(there / "runs", made);
  const std::string before = utc_timestamp();
  const ImportResult imported = import_packed_run(run.path(), here.path());
  run::RunRecord expected = run.record();
  REQUIRE(expected.workspace == there.path().string());
  expected.workspace.clear();
  // It is known there from now on, whenever it was trained.
  expected.imported = imported.folder.record().imported;
  CHECK(expected.imported >= before);
  CHECK(expected.imported <= utc_timestamp());
  REQUIRE(to_json(imported.folder.record()) == to_json(expected));
  // It is of the workspace's project of that path, where it has one.
  const TemporaryFolder own;
  own.write("forge_workspace/workspace.yaml", "");
  own.write(expected.project + "/meta.yaml", "");
  const run::RunRecord known =
      import_packed_run(run.path(), own / "runs", {}, own.path()).folder.record();
  CHECK(known.workspace == own.path().string());
  CHECK(known.workspace_id == project::workspace_id(own.path()));
  CHECK_FALSE(known.workspace_id.empty());
}

TEST_CASE("a run that another workspace has imported is imported beside it", "[upkeep][pack]") {
  const TemporaryFolder there, first, second, shared;
  const run::RunFolder run = make_completed_run(there / "runs", MadeRun());
  const std::string id = run.id();
  for (const TemporaryFolder* workspace : {&first, &second}) {
    workspace->write("forge_workspace/workspace.yaml", "");
    workspace->write(run.record().project + "/meta.yaml", "");
  }
  const auto import = [&](const std::filesystem::path& workspace) {
    return import_packed_run(run.path(), shared.path(), {}, workspace);
  };
  CHECK(import(first.path()).folder.id() == id);
  const ImportResult beside = import(second.path());
  CHECK(beside.created);
  CHECK(beside.folder.id() == id + "-2");
  CHECK(beside.folder.record().id == id + "-2");
  CHECK(beside.folder.record().workspace == second.path().string());
  REQUIRE(beside.notes.size() == 1);
  CHECK(contains(beside.notes[0], "'" + id + "' is here already, of another workspace"));
  CHECK(beside.folder.state() == run::RunState::completed);
  for (const TemporaryFolder* workspace : {&first, &second})
    CHECK_FALSE(import(workspace->path()).created);
  CHECK_FALSE(import({}).created);  // it has no tables of its own
}

TEST_CASE("a repetition whose number another workspace has gets the next one", "[upkeep][pack]") {
  const TemporaryFolder there, mine, theirs, shared;
  const run::RunFolder run = make_completed_run(there.path(), MadeRun());
  const std::string id = run.id();
  MadeRun later;
  later.id = id + "-2";
  later.created = "2026-11-21T10:00:00.000Z";
  const run::RunFolder again = make_completed_run(there.path(), later);
  for (const TemporaryFolder* workspace : {&mine, &theirs}) {
    workspace->write("forge_workspace/workspace.yaml", "");
    workspace->write(run.record().project + "/meta.yaml", "");
  }
  const auto import = [&](const run::RunFolder& from, const TemporaryFolder& workspace) {
    return import_packed_run(from.path(), shared.path(), {}, workspace.path()).folder.id();
  };
  CHECK(import(run, mine) == id);
  CHECK(import(run, theirs) == id + "-2");
  CHECK(import(again, mine) == id + "-3");
  CHECK(import(again, mine) == id + "-3");  // it is here
}

TEST_CASE("a run beside one of a config of the same name gets the next number", "[upkeep][pack]") {
  const TemporaryFolder there, here, folder;
  MadeRun nested, flat;
  nested.config = "a/x";
  flat.config = "a_x";
  nested.id = flat.id = make_completed_run(folder.path(), flat).id();
  const run::RunFolder first = make_completed_run(here.path(), flat),
                       second = make_completed_run(there.path(), nested);
  REQUIRE(first.id() == second.id());
  folder.write("forge_workspace/workspace.yaml", "");
  folder.write(first.record().project + "/meta.yaml", "");
  CHECK(import_packed_run(second.path(), here.path(), {}, folder.path()).folder.id() ==
        first.id() + "-2");
}

TEST_CASE("an imported run is one of the workspace's copies, too", "[upkeep][pack]") {
  const TemporaryFolder there, folder;
  const run::RunFolder run = new_run(there.path(), small_inputs());
  const std::string project = run.record().project;
  folder.write("first/forge_workspace/workspace.yaml", "");
  folder.write("first/" + project + "/meta.yaml", "");
  import_packed_run(run.path(), folder / "first/runs", {}, folder / "first");
  std::filesystem::copy(
      folder / "first", folder / "copy", std::filesystem::copy_options::recursive);
  const run::RunFolder copy(folder / "copy/runs" / run.id());
  CHECK(run::is_of_project(copy, copy.record(), folder / "copy", project));
}

TEST_CASE("messages of all processes are packed", "[upkeep][pack]") {
  Scene scene;
  PackOptions options;
  options.file = scene.there / "words.pack";
  for (const int rank : {0, 1, 2})
    write_file_atomic(scene.run.stderr_file(rank), "of " + std::to_string(rank));
  fs::create_symlink(scene.there / "x.yaml", scene.run.stderr_file(3));
  pack_run(scene.run, options);
  const run::RunFolder copy = import_packed_run(options.file, scene.here.path()).folder;
  for (const int rank : {0, 1, 2})
    CHECK(read_file(copy.stderr_file(rank)) == "of " + std::to_string(rank));
  CHECK_FALSE(fs::exists(copy.stderr_file(3)));
}

TEST_CASE("a run that is to go on is packed with all that it needs for that", "[upkeep][pack]") {
  const Scene scene(/*completed=*/false);
  const ImportResult imported = import_packed_run(scene.there / "run.pack", scene.here.path());
  REQUIRE(imported.folder.state() == run::RunState::stopped);
  const auto checkpoints = weights::list_checkpoints(imported.folder.checkpoints());
  REQUIRE(checkpoints.size() == 2);
  REQUIRE(fs::exists(checkpoints[1] / weights::optimizer_file));
}

TEST_CASE("a pack of a run that has still to begin from another one says so, here and there",
          "[upkeep][pack]") {
  const TemporaryFolder there, here;
  const run::RunFolder other = make_completed_run(there.path(), {});
  save_values(other, 9);
  run::RunInputs inputs = small_inputs();
  inputs.continue_from = {other.checkpoints() / "000000009", other.events_file(), 9};
  PackOptions options;
  options.file = there / "run.pack";
  const run::RunFolder run = new_run(there.path(), inputs);
  const std::string said = join(pack_run(run, options).notes, "\n");
  CHECK(contains(said, "it begins from checkpoint 000000009 of run '" + other.id() + "'"));
  CHECK(contains(said, "forge pack " + other.id() + " --checkpoints"));
  remove_tree(other.path());
  CHECK(import_packed_run(options.file, here.path()).notes == std::vector<std::string>{said});
}

TEST_CASE("a pack says what it is made of", "[upkeep][pack]") {
  const Scene scene;
  extract_archive(scene.there / "run.pack", scene.here / "out");
  const nlohmann::json words = parse_json(read_file(scene.here / "out/pack.json"));
  REQUIRE(words.at("run") == scene.run.id());
  REQUIRE(words.at("data").at("sources")[0].at("how") == "forge makes it from the config");
  REQUIRE(words.at("files").contains("run/config.json"));
  REQUIRE(read_file(scene.here / "out/templates/configs/x.yaml") == "a: 1\n");
  REQUIRE(
      import_packed_run(scene.here / "out", scene.here.path()).created);  // unpacked it is one, too
}

TEST_CASE("a changed file of a pack and one too many are found", "[upkeep][pack]") {
  const Scene scene;
  const fs::path out = scene.here / "out";
  extract_archive(scene.there / "run.pack", out);
  const std::string events = read_file(out / "run/events.jsonl");
  write_file_atomic(out / "run/events.jsonl", events + "\n");
  REQUIRE(contains(error_of([&] { import_packed_run(out, scene.here.path()); }),
                   "not what was packed"));
  write_file_atomic(out / "run/events.jsonl", events);
  write_file_atomic(out / "run/more", "");
  REQUIRE(contains(error_of([&] { import_packed_run(out, scene.here.path()); }), "does not know"));
  remove_tree(out / "run/more");
  remove_tree(out / "run/config.json");
  REQUIRE(contains(error_of([&] { import_packed_run(out, scene.here.path()); }), "lacks"));
  REQUIRE(run::list_runs(scene.here.path()).empty());
}

TEST_CASE("a run that is packed does not run and cannot begin", "[upkeep][pack]") {
  const TemporaryFolder there;
  const run::RunFolder run = make_stopped_run(there.path(), {}, 9);
  save_values(run, 9);
  PackOptions options;
  options.file = there / "run.pack";
  bool is_seen = false;
  options.progress = [&](size_t, size_t) {
    is_seen = true;
    CHECK_FALSE(run.is_running());
    CHECK_FALSE(FileLock::try_acquire(run.lock_file()));
  };
  pack_run(run, options);
  CHECK(is_seen);
  CHECK(run.try_lock());
}

TEST_CASE("what is edited while it is packed makes no pack that nobody can import",
          "[upkeep][pack]") {
  const TemporaryFolder there;
  const run::RunFolder run = make_completed_run(there.path(), {});
  save_values(run, 9);
  const fs::path sheet = there.write("x.yaml", "a: 1\n");
  PackOptions options;
  options.file = there / "run.pack";
  options.templates = {{"configs/x.yaml", sheet}};
  fs::path edited;
  bool is_edited = false;
  options.progress = [&](size_t done, size_t all) {
    if (is_edited || 2 * done < all) return;  // once all is hashed
    is_edited = true;
    write_file_atomic(edited, read_file(edited) + "\n");
  };
  SECTION("a template and a note are packed as they were") {
    run::write_annotations(run, {false, "note", {}});
    for (const fs::path& file : {sheet, run.annotations_file()}) {
      const TemporaryFolder other;
      edited = file;
      is_edited = false;
      options.file = other / "run.pack";
      pack_run(run, options);
      REQUIRE(is_edited);
      CHECK(import_packed_run(options.file, other / "runs").created);
    }
  }
  SECTION("a file that nobody may edit ends the work") {
    edited = run.environment_file();
    const std::string error = error_of([&] { pack_run(run, options); });
    REQUIRE(is_edited);
    CHECK(contains(error, "env.json' changed while it was packed"));
    CHECK_FALSE(fs::exists(options.file));
  }
}

TEST_CASE("a run folder is imported in without links and without damaged checkpoints",
          "[upkeep][import]") {
  const Scene scene;
  fs::resize_file(scene.run.checkpoints() / "000000009" / weights::weights_file, 5);
  remove_tree(scene.run.environment_file());
  fs::create_symlink("/etc/passwd", scene.run.path() / "env.json");
  const ImportResult imported = import_packed_run(scene.run.path(), scene.here.path());
  REQUIRE(imported.notes.size() == 1);
  REQUIRE(contains(imported.notes[0], "000000009"));
  REQUIRE(contains(imported.notes[0], shown_path(scene.run.path())));
  REQUIRE_FALSE(contains(imported.notes[0], ".tmp-import"));
  REQUIRE_FALSE(fs::exists(imported.folder.environment_file()));
  REQUIRE(weights::list_checkpoints(imported.folder.checkpoints()).size() == 1);
}

TEST_CASE("an imported run is not hidden, whatever its remarks say", "[upkeep][import][hostile]") {
  const Scene scene;
  run::write_annotations(scene.run, {true, "note", {"tag"}});
  const ImportResult imported = import_packed_run(scene.run.path(), scene.here.path());
  REQUIRE(imported.notes ==
          std::vector<std::string>{"the run was archived where it comes from; here it is listed"});
  const run::Annotations remarks = run::read_annotations(imported.folder);
  REQUIRE_FALSE(remarks.archived);
  REQUIRE(remarks.note == "note");
  REQUIRE(remarks.tags == std::vector<std::string>{"tag"});
}

TEST_CASE("a run whose key is not that of its identity or whose name climbs out is refused",
          "[upkeep][import]") {
  const Scene scene;
  const nlohmann::json record = parse_json(read_file(scene.run.record_file()));
  nlohmann::json other = record;
  other["identity"]["threads"] = 7;
  write_file_atomic(scene.run.record_file(), json_text(other));
  const auto message = [&] {
    return error_of([&] { import_packed_run(scene.run.path(), scene.here.path()); });
  };
  REQUIRE(contains(message(), "is not that of the identity in it"));
  other = record;
  other["id"] = "../../evil";
  write_file_atomic(scene.run.record_file(), json_text(other));
  REQUIRE(contains(message(), "is no name for a run"));
}

TEST_CASE("names that the runs folder, an option or a terminal could take for theirs are refused",
          "[upkeep][import][hostile]") {
  const Scene scene;
  nlohmann::json record = parse_json(read_file(scene.run.record_file()));
  for (const std::string& name : {std::string("forge.sqlite"),
                                  std::string("forge.sqlite-wal"),
                                  std::string(".queue"),
                                  std::string("--help"),
                                  std::string("-rf"),
                                  std::string("a\nb"),
                                  std::string("a\x1b[2Jb"),
                                  std::string("a\0b", 3),
                                  std::string("a.tmp-12"),
                                  std::string(201, 'a'),
                                  std::string()}) {
    INFO(name);
    record["id"] = name;
    write_file_atomic(scene.run.record_file(), record.dump());
    REQUIRE_FALSE(
        error_of([&] { import_packed_run(scene.run.path(), scene.here.path()); }).empty());
    REQUIRE(run::list_runs(scene.here.path()).empty());
  }
  record["config"] = "train_lr.tmp-2 é";
  record["id"] = "train_lr.tmp-2 é-" + record.at("key").get<std::string>() + "-3";
  write_file_atomic(scene.run.record_file(), record.dump());
  REQUIRE(import_packed_run(scene.run.path(), scene.here.path()).created);
}

TEST_CASE("a run that is said to be of another config is refused", "[upkeep][import][hostile]") {
  const Scene scene;
  nlohmann::json record = parse_json(read_file(scene.run.record_file()));
  record["config"] = "train_other";
  write_file_atomic(scene.run.record_file(), record.dump());
  REQUIRE(contains(error_of([&] { import_packed_run(scene.run.path(), scene.here.path()); }),
                   "is none of config 'train_other'"));
  REQUIRE(run::list_runs(scene.here.path()).empty());
}

TEST_CASE("a run whose config or request was changed is refused", "[upkeep][import][hostile]") {
  const TemporaryFolder there, here;
  const run::RunFolder folder = new_run(there.path());
  const auto message = [&] {
    return error_of([&] { import_packed_run(folder.path(), here.path()); });
  };
  nlohmann::json request = parse_json(read_file(folder.request_file()));
  const auto refused = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json changed = request;
    change(changed);
    write_file_atomic(folder.request_file(), changed.dump() + "\n");
    return message();
  };
  CHECK(contains(refused([](auto& changed) { changed["experiment"]["train"]["max_steps"] = 70; }),
                 "train.max_steps was 3 and is 70"));
  CHECK(contains(refused([](auto& changed) {
                   changed["experiment"]["backend"] = "external";
                   changed["experiment"]["external"]["command"] = {"/bin/sh", "-c", "id"};
                 }),
                 "is not the config that run"));
  CHECK(
      contains(refused([](auto& changed) { changed["identity"] = "0"; }), "identity is not that"));
  CHECK(contains(refused([](auto& changed) { changed["threads"] = 9; }), "threads is not that"));
  CHECK(contains(refused([](auto& changed) { changed["device"] = "cuda"; }), "device is not that"));
  CHECK(contains(refused([](auto& changed) { changed["job"] = "evaluate"; }), "job is not that"));
  CHECK(contains(refused([](auto& changed) { changed["initial_weights_hash"] = "f00"; }),
                 "initial_weights_hash is not that"));
  // What decides no result may differ.
  CHECK(refused([](auto& changed) { changed["experiment"]["train"]["log_every"] = 7; }) == "");
  remove_tree(here.path());
  make_directories(here.path());
  nlohmann::json config = parse_json(read_file(folder.config_file()));
  config["seed"] = 43;
  write_file_atomic(folder.config_file(), config.dump());
  CHECK(contains(message(), "seed was 42 and is 43"));
}

TEST_CASE("a run with another tokenizer than it was trained with is not imported",
          "[upkeep][import][hostile]") {
  const Scene scene;
  data::save_tokenizer(data::Tokenizer(data::initial_vocabulary()), scene.run.tokenizer_file());
  const std::string error =
      error_of([&] { import_packed_run(scene.run.path(), scene.here.path()); });
  INFO(error);
  REQUIRE(contains(error, "is not the tokenizer that run"));
  REQUIRE(run::list_runs(scene.here.path()).empty());
}

TEST_CASE("another run of the same name is not replaced and a running one not imported",
          "[upkeep][import]") {
  const Scene scene;
  MadeRun other;
  other.created = "2026-11-21T10:00:00.000Z";
  make_failed_run(scene.here.path(), other, 2, "no");
  REQUIRE(contains(error_of([&] { import_packed_run(scene.run.path(), scene.here.path()); }),
                   "there is another run"));
  const auto lock = FileLock::try_acquire(scene.run.lock_file());
  REQUIRE(contains(error_of([&] { import_packed_run(scene.run.path(), scene.here.path()); }),
                   "is running"));
}

TEST_CASE("a run that is here with other events is not taken for the imported one",
          "[upkeep][import]") {
  const Scene scene;
  const auto pack = scene.there / "run.pack";
  const run::RunFolder here = import_packed_run(pack, scene.here.path()).folder;
  append_line(here, "{\"event\": \"log\"}");
  const std::string events = read_file(here.events_file());
  const std::string error = error_of([&] { import_packed_run(pack, scene.here.path()); });
  CHECK(contains(error, "is here already and differs in events.jsonl: nothing was imported"));
  CHECK(contains(error, "forge runs rm " + here.id()));
  CHECK(read_file(here.events_file()) == events);
  CHECK_FALSE(error_of([&] { import_packed_run(scene.run.path(), scene.here.path()); }).empty());
}

TEST_CASE("a completed run whose log was cut is neither packed nor imported", "[upkeep][import]") {
  const Scene scene;
  const std::string log = read_file(scene.run.events_file());
  write_file_atomic(scene.run.events_file(), log.substr(0, log.rfind('{')));
  CHECK(contains(error_of([&] { import_packed_run(scene.run.path(), scene.here.path()); }),
                 "is damaged"));
  PackOptions options;
  options.file = scene.there / "again.pack";
  CHECK(contains(error_of([&] { pack_run(scene.run, options); }), "is damaged"));
  CHECK_FALSE(fs::exists(options.file));
}

TEST_CASE("remarks of one's own make no other run", "[upkeep][import]") {
  const Scene scene;
  const run::RunFolder here = import_packed_run(scene.there / "run.pack", scene.here.path()).folder;
  run::Annotations remarks = run::read_annotations(here);
  remarks.note = "good";
  run::write_annotations(here, remarks);
  CHECK_FALSE(import_packed_run(scene.there / "run.pack", scene.here.path()).created);
}

TEST_CASE("a run folder larger than the disk is refused before anything is copied",
          "[upkeep][import]") {
  const Scene scene;
  write_file_atomic(scene.run.stderr_file(), "words");
  fs::resize_file(scene.run.stderr_file(), fs::space(scene.here.path()).available * 2);  // a hole
  const std::string error =
      error_of([&] { import_packed_run(scene.run.path(), scene.here.path()); });
  REQUIRE(contains(error, "the disk is full: the run needs"));
  for (const auto& entry : fs::directory_iterator(scene.here.path()))
    REQUIRE_FALSE(fs::exists(entry.path() / "run.json"));
}

TEST_CASE("packing and importing that is interrupted leaves nothing beside its place",
          "[upkeep][pack][import]") {
  const Scene scene;
  const auto interrupt = [](size_t, size_t) { throw Error("interrupted", ExitCode::failed); };
  PackOptions options;
  options.file = scene.there / "other.pack";
  size_t pieces = 0, done = 0, whole = 1;
  options.progress = [&](size_t now, size_t all) {
    REQUIRE(now > done);
    ++pieces;
    done = now;
    whole = all;
  };
  pack_run(scene.run, options);
  REQUIRE(done == whole);
  fs::remove(options.file);
  const size_t last = pieces;  // while the pack is written
  options.progress = [&](size_t, size_t) {
    if (--pieces == 0) throw Error("interrupted", ExitCode::failed);
  };
  REQUIRE(contains(error_of([&] { pack_run(scene.run, options); }), "interrupted"));
  REQUIRE(last > 1);
  for (const auto& origin : {scene.run.path(), scene.there / "run.pack"})
    REQUIRE(contains(error_of([&] { import_packed_run(origin, scene.here.path(), interrupt); }),
                     "interrupted"));
  for (const auto* folder : {&scene.there, &scene.here})
    for (const auto& entry : fs::directory_iterator(folder->path())) {
      INFO(entry.path());
      REQUIRE_FALSE(contains(entry.path().filename().string(), "tmp-"));
    }
}

TEST_CASE("an import of nothing makes no runs folder", "[upkeep][import]") {
  const TemporaryFolder folder;
  CHECK(contains(error_of([&] { import_packed_run(folder / "nope", folder / "runs"); }),
                 "there is no"));
  CHECK_FALSE(fs::exists(folder / "runs"));
  folder.write("text", "no pack");
  folder.write("model/config.json", "{}");
  for (const char* origin : {"text", "model"}) {
    CHECK_FALSE(
        error_of([&] { import_packed_run(folder / origin, folder / "new" / "runs"); }).empty());
    CHECK_FALSE(fs::exists(folder / "new"));
  }
}

TEST_CASE("what is no run says what it might be", "[upkeep][import]") {
  const TemporaryFolder folder, here;
  folder.write("model/config.json", "{}");
  REQUIRE(
      contains(error_of([&] { import_packed_run(folder / "model", here.path()); }), "import-hf"));
  REQUIRE(contains(error_of([&] { import_packed_run(folder.write("x", "text"), here.path()); }),
                   "is no pack"));
  REQUIRE(
      contains(error_of([&] { import_packed_run(folder / "none", here.path()); }), "there is no"));
}

TEST_CASE("what is wrong with a packed file is said of the pack, since nothing else is left") {
  const Scene scene;
  const fs::path out = scene.here / "out";
  extract_archive(scene.there / "run.pack", out);
  write_file_atomic(out / "run/run.json", "[]");
  nlohmann::json manifest = parse_json(read_file(out / "pack.json"));
  manifest["files"]["run/run.json"] = {{"bytes", 2}, {"hash", hash_file(out / "run/run.json")}};
  const fs::path pack = scene.here / "changed.pack";
  ArchiveWriter archive(pack);
  archive.add_text("pack.json", json_text(manifest));
  for (const auto& [name, entry] : manifest["files"].items()) archive.add_file(name, out / name);
  archive.finish();
  const std::string error = error_of([&] { import_packed_run(pack, scene.here / "runs"); });
  INFO(error);
  REQUIRE(contains(error, shown_path(pack / "run/run.json")));
  REQUIRE_FALSE(contains(error, ".tmp-import"));
}

TEST_CASE("what pack.json does not list is refused before it is written",
          "[upkeep][pack][hostile]") {
  const TemporaryFolder folder;
  const auto refused_for = [&](const std::string& manifest) {
    ArchiveWriter archive(folder / "bad.pack");
    archive.add_text("pack.json", manifest);
    archive.add_text("run/large", std::string(1000, 'x'));
    archive.finish();
    return error_of([&] { import_packed_run(folder / "bad.pack", folder / "runs"); });
  };
  CHECK(contains(refused_for("{\"files\": {}}"), "does not know"));
  CHECK(contains(refused_for("{\"files\": {\"run/large\": {\"bytes\": 999}}}"),
                 "not what was packed"));
  CHECK(contains(refused_for(std::string(100'000, '[')), "nested more than 100 deep"));
}

}  // namespace
}  // namespace forge::manage
