#include "core/run/logits.h"

#include <unistd.h>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/config/json.h"
#include "core/data/token_file.h"
#include "core/data/token_file_writer.h"
#include "core/protocol/json_fields.h"
#include "core/run/job.h"
#include "core/weights/safetensors.h"

namespace forge::run {
namespace {

constexpr int64_t most_tokens = 1 << 20;

/// A token file of random ids, removed with the object.
class RandomTokens {
 public:
  RandomTokens(const LogitsQuestion& question, int vocab_size)
      : path_(question.output.string() + ".tokens-" + std::to_string(::getpid())) {
    // The last token of a row is the first of the next; one more ends the last row.
    const int64_t count = int64_t{question.rows} * question.length + 1;
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < count; ++i) {
      const auto words = philox({static_cast<uint32_t>(i), 0, 0, 0}, question.seed);
      ids.push_back(static_cast<int32_t>(words[0] % static_cast<uint32_t>(vocab_size)));
    }
    data::TokenFileWriter writer(path_, vocab_size, hash_hex("random"));
    writer.append(ids.data(), ids.size());
    writer.finish();
  }
  ~RandomTokens() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  RandomTokens(const RandomTokens&) = delete;
  RandomTokens& operator=(const RandomTokens&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

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
  throw Error("'" + shown_path(file.path()) + "': '" + name + "' has another shape than asked for",
              {},
              "",
              ExitCode::failed);
}

/// The file is what the worker says, and what it was asked for.
void check_answer(const nlohmann::json& values,
                  const LogitsQuestion& question,
                  int64_t vocab_size) {
  const auto answer = protocol::read_fields<WrittenLogits>(values, "the worker's result");
  const weights::SafetensorsFile file(question.output);
  const auto bytes = static_cast<int64_t>(fs::file_size(question.output));
  if (answer.rows != question.rows || answer.bytes != bytes) {
    throw Error("the worker says that it wrote " + std::to_string(answer.rows) + " rows in " +
                    std::to_string(answer.bytes) + " bytes, and '" + shown_path(question.output) +
                    "' has " + std::to_string(bytes),
                {},
                "",
                ExitCode::failed);
  }
  require_shape(file, "input_ids", {question.rows, question.length});
  require_shape(file, "logits", {question.rows, question.length, vocab_size});
}

}  // namespace

nlohmann::json write_logits(const RunModel& model,
                            const LogitsQuestion& question,
                            const Backend& backend,
                            Launcher& launcher) {
  if (question.rows < 1 || question.length < 1 ||
      int64_t{question.rows} * question.length > most_tokens) {
    throw Error("logits of " + std::to_string(question.rows) + " rows of " +
                    std::to_string(question.length) + " tokens were asked for",
                {},
                "at least one token, at most 1,048,576");
  }
  const RandomTokens tokens(question, model.experiment.model.vocab_size);
  config::Experiment experiment = model.experiment;
  experiment.train.seq_len = question.length;
  protocol::Request request;
  request.job = protocol::Job::logits;
  request.experiment = config::to_json(experiment);
  request.evaluation_tokens = {{fs::absolute(tokens.path()).string(), question.rows}};
  request.initial_weights = fs::absolute(model.checkpoint).string();
  request.output = fs::absolute(question.output).string();
  request.device = question.device;
  request.threads = question.threads;
  nlohmann::json values;
  run_job(launcher,
          backend.command(request),
          request,
          job_silence_seconds,
          [&](const protocol::Event& event) {
            if (const auto* result = std::get_if<protocol::Result>(&event)) values = result->values;
          });
  if (values.is_null()) throw Error("the worker ended without a result", {}, "", ExitCode::failed);
  check_answer(values, question, model.experiment.model.vocab_size);
  return values;
}

}  // namespace forge::run
