#include "core/run/logits.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/base/staging.h"
#include "core/config/experiment.h"
#include "core/data/rows/token_file.h"
#include "core/model/weights/safetensors.h"
#include "core/worker/job.h"
#include "core/worker/json_fields.h"

namespace forge::run {
namespace {

constexpr int64_t max_tokens = 1 << 20;

void write_random_tokens(const fs::path& path, const LogitsQuestion& question, int vocab_size) {
  // The last token of a row is the first of the next; one more ends the last row.
  const int64_t count = int64_t{question.rows} * question.length + 1;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) {
    const auto words = philox({static_cast<uint32_t>(i), 0, 0, 0}, question.seed);
    ids.push_back(static_cast<int32_t>(words[0] % static_cast<uint32_t>(vocab_size)));
  }
  data::TokenFileWriter writer(path, vocab_size, hash_hex("random"));
  writer.append(ids.data(), ids.size());
  writer.finish();
}

/// What a worker's result must hold.
struct WrittenLogits {
  int64_t rows = 0;
  int64_t bytes = 0;
};

template <class Visitor>
void fields(Visitor& visit, WrittenLogits& answer) {
  visit.field("rows", answer.rows);
  visit.field("bytes", answer.bytes);
}

void require_shape(const weights::SafetensorsFile& file,
                   const std::string& name,
                   const std::vector<int64_t>& shape) {
  if (file.tensor(name).shape == shape) return;
  refuse_answer("'" + shown_path(file.path()) + "': '" + name +
                "' has another shape than asked for");
}

/// The file is what the worker says, and what it was asked for.
void check_answer(const nlohmann::json& values,
                  const LogitsQuestion& question,
                  int64_t vocab_size) {
  const auto answer = worker::read_fields<WrittenLogits>(values, "the worker's result");
  const weights::SafetensorsFile file(question.output);
  const auto bytes = static_cast<int64_t>(fs::file_size(question.output));
  if (answer.rows != question.rows || answer.bytes != bytes) {
    refuse_answer("the worker says that it wrote " + std::to_string(answer.rows) + " rows in " +
                  std::to_string(answer.bytes) + " bytes, and '" + shown_path(question.output) +
                  "' has " + std::to_string(bytes));
  }
  require_shape(file, "input_ids", {question.rows, question.length});
  require_shape(file, "logits", {question.rows, question.length, vocab_size});
}

}  // namespace

nlohmann::json write_logits(const RunModel& model,
                            const LogitsQuestion& question,
                            const worker::Backend& backend,
                            worker::Launcher& launcher) {
  if (question.rows < 1 || question.length < 1 ||
      int64_t{question.rows} * question.length > max_tokens) {
    throw Error("logits of " + std::to_string(question.rows) + " rows of " +
                    std::to_string(question.length) + " tokens were asked for",
                "at least one token, at most 1,048,576");
  }
  const TemporaryFile tokens(question.output.string() + ".tokens-" + process_digits());
  write_random_tokens(tokens.path(), question, model.experiment.model.vocab_size);
  worker::Request request =
      model_request(worker::Job::logits, model, question.device, question.threads);
  request.experiment["train"]["seq_len"] = question.length;
  request.evaluation_tokens = {{fs::absolute(tokens.path()).string(), question.rows}};
  request.output = fs::absolute(question.output).string();
  const nlohmann::json values = worker::job_result(launcher, backend.command(request), request);
  check_answer(values, question, model.experiment.model.vocab_size);
  return values;
}

}  // namespace forge::run
