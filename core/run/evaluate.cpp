#include "core/run/evaluate.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/config/json.h"
#include "core/data/scored_bytes.h"
#include "core/data/tokenizer_json.h"
#include "core/protocol/json_fields.h"
#include "core/run/examiner.h"
#include "core/run/job.h"

namespace forge::run {
namespace {

int64_t bytes_of(const RunModel& model, const EvaluationData& data) {
  if (model.tokenizer.empty()) return 0;
  const data::Tokenizer tokenizer = data::load_tokenizer(model.tokenizer);
  const int seq_len = model.experiment.train.seq_len;
  int64_t bytes = 0;
  for (const protocol::TokenSource& source : data.tokens) {
    const data::TokenFile file(source.path);
    bytes += source.pad_id ? data::scored_bytes_of_documents(file, source.rows, seq_len, tokenizer)
                           : data::scored_bytes(
                                 file, std::min(source.rows * seq_len, file.size() - 1), tokenizer);
  }
  return bytes;
}

protocol::Request request_of(const RunModel& model,
                             const EvaluationData& data,
                             const std::string& device,
                             int threads) {
  protocol::Request request;
  request.job = protocol::Job::evaluate;
  request.experiment = config::to_json(model.experiment);
  request.evaluation_tokens = data.tokens;
  ask_for_answers(model.experiment, request);
  request.initial_weights = fs::absolute(model.checkpoint).string();
  request.device = device;
  request.threads = threads;
  return request;
}

/// What a worker's result must hold.
struct MeasuredLoss {
  double loss = 0;
  int64_t tokens = 0;
  double seconds = 0;
};

template <class Visitor>
void fields(Visitor& visit, MeasuredLoss& answer) {
  visit.field("loss", answer.loss);
  visit.field("tokens", answer.tokens);
  visit.field("seconds", answer.seconds);
}

}  // namespace

ModelEvaluation evaluate(const RunModel& model,
                         const EvaluationData& data,
                         const std::string& device,
                         int threads,
                         const Backend& backend,
                         Launcher& launcher,
                         const std::function<void(double)>& progress) {
  const protocol::Request request = request_of(model, data, device, threads);
  Examiner examiner(request, model.tokenizer);
  ModelEvaluation evaluation;
  nlohmann::json values;
  const auto listen = [&](const protocol::Event& event) {
    if (const auto* made = std::get_if<protocol::Progress>(&event)) progress(made->fraction);
    if (const auto* machine = std::get_if<protocol::Environment>(&event))
      evaluation.device = machine->device_name;
    if (const auto* answers = std::get_if<protocol::Answers>(&event)) examiner.take(*answers);
    if (const auto* result = std::get_if<protocol::Result>(&event)) values = result->values;
  };
  run_job(launcher, backend.command(request), request, job_silence_seconds, listen);
  if (values.is_null()) throw Error("the worker ended without a result", {}, "", ExitCode::failed);
  const auto answer = protocol::read_fields<MeasuredLoss>(values, "the worker's result");
  evaluation.loss = answer.loss;
  evaluation.tokens = answer.tokens;
  evaluation.seconds = answer.seconds;
  evaluation.perplexity = std::exp(evaluation.loss);
  evaluation.scores = examiner.finish();
  evaluation.bytes = bytes_of(model, data);
  if (evaluation.bytes > 0) {
    const double nats = evaluation.loss * static_cast<double>(evaluation.tokens);
    evaluation.bits_per_byte = nats / std::log(2.0) / static_cast<double>(evaluation.bytes);
  }
  return evaluation;
}

}  // namespace forge::run
