#include "core/run/inputs_hash.h"

#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/data/rows/token_file.h"
#include "core/run/request.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using namespace tests;

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

}  // namespace
}  // namespace forge::run
