#include "core/run/renew.h"

#include "core/base/fs.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/run_folder_maker.h"

namespace forge::run {
namespace {

using namespace tests;

TEST_CASE("a run goes on only with the backend that it was begun with", "[run][renew]") {
  const TemporaryFolder runs;
  const RunRecord record = new_run(runs.path()).record();
  BackendInfo backend = small_inputs().backend;
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
  renew_request(moved, request_of(moved), data);
  const protocol::Request request = request_of(moved);
  REQUIRE(request.run_dir == moved.path().string());
  REQUIRE(request.train_tokens[0].path == "/new/train.tokens");
  REQUIRE(request.train_tokens[0].rows == 7);
  REQUIRE(request.identity == moved.record().key);
  data.data_fingerprint = "other";
  REQUIRE(tests::contains(error_of([&] { renew_request(moved, request, data); }),
                          "its data is d and would be other"));
}

TEST_CASE("an imported model has nothing to go on with", "[run][renew]") {
  const TemporaryFolder runs;
  const RunFolder folder = make_completed_run(runs.path(), {});
  remove_tree(folder.request_file());
  REQUIRE(tests::contains(error_of([&] { request_of(folder); }), "is a model that was imported"));
}

}  // namespace
}  // namespace forge::run
