#include "core/run/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/experiment.h"
#include "core/data/corpus/corpus.h"
#include "core/data/corpus/corpus_index.h"
#include "core/data/rows/dataset.h"
#include "core/data/rows/prepare.h"
#include "core/data/rows/text_source.h"
#include "core/data/rows/token_file.h"
#include "core/data/rows/token_statistics.h"
#include "core/data/tasks/task_spec.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/model/weights/model_files.h"
#include "core/run/request.h"
#include "core/run/scorer.h"
#include "core/worker/job.h"
#include "core/worker/json_fields.h"
#include "core/worker/plausible.h"

namespace forge::run {
namespace {

const std::string magic = "forgetok";

/// Ids of another vocabulary would give a loss that means nothing.
void require_own_tokenizer(const RunModel& model,
                           const std::string& fingerprint,
                           const std::string& what) {
  if (model_tokenizer(model).fingerprint() == fingerprint) return;
  throw Error(what + " is in the tokens of another tokenizer than the model's",
              "give the text itself: it is read with the model's own tokenizer");
}

/// The same for rows of a task: both must be of ids that no tokenizer made.
void require_own_ids(const RunModel& model,
                     const config::DataConfig& wanted,
                     const data::PreparedData& made,
                     const std::string& name) {
  const bool reads_text = !model.tokenizer.empty();
  const bool is_text = !made.tokenizer.empty();
  if (reads_text && is_text) {
    require_own_tokenizer(model, made.tokenizer_fingerprint, name);
  } else if (reads_text) {
    throw Error(
        name + " is a task with task-specific token ids, and the model reads those of a tokenizer");
  } else if (is_text) {
    throw Error(name + " is text, and the model has no tokenizer to read it with");
  } else if (model.identity) {
    const std::string other = data::tasks::difference_of_ids(wanted, model.experiment.data);
    if (!other.empty())
      throw Error("the ids of " + name + " mean something else to the model: " + other,
                  "give a config of the task that the model was trained on, with the same ids");
  }
}

/// ": 'a.txt', 'b.txt'", the files that the data is made of; "" where there are none.
std::string files_text(const config::DataConfig& data) {
  std::vector<std::string> paths = {data.path, data.evaluation_path, data.task.grammar};
  for (const auto& [name, source] : data.sources)
    paths.insert(paths.end(), {source.path, source.evaluation_path});
  std::vector<std::string> files;
  for (const std::string& path : paths)
    if (!path.empty()) files.push_back("'" + shown_path(path) + "'");
  return files.empty() ? "" : ": " + join(files, ", ");
}

/// Its own rows are made of what the run read. A tokenizer that was trained on another text is
/// another one, too, so the text comes first.
void require_unchanged(const RunModel& model,
                       const config::Experiment& experiment,
                       const data::PreparedData& made) {
  const std::string hint = "the original held-out rows no longer exist; choose others with --data";
  if (made.data_fingerprint != model.data_fingerprint)
    throw Error(
        "the text that the run was trained on has changed since" + files_text(experiment.data),
        hint,
        ExitCode::failed);
  if (made.tokenizer_fingerprint != model.tokenizer_fingerprint)
    throw Error("the tokenizer that the run's text was read with has changed since" +
                    (experiment.tokenizer.path.empty()
                         ? ""
                         : ": '" + shown_path(experiment.tokenizer.path) + "'"),
                hint,
                ExitCode::failed);
}

std::optional<int32_t> document_start_of(const RunModel& model) {
  if (!model.experiment.train.document_mask) return std::nullopt;
  const int32_t bos = model_tokenizer(model).bos_id();
  if (bos < 0) {
    throw Error(
        "train.document_mask is true, but the tokenizer has no BOS to begin a document with");
  }
  return bos;
}

bool is_token_file(const fs::path& path) {
  if (!fs::is_regular_file(path) || fs::file_size(path) < magic.size()) return false;
  const MappedFile file(path);
  return std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

/// What a document is there: as in the text that the model was trained on, where that is of the
/// same kind, else a file, or the field "text" of a line.
data::DocumentRule rule_for(const fs::path& path, const config::DataConfig& trained_on) {
  const bool is_lines = config::is_json_lines(path);
  if (trained_on.source == (is_lines ? "jsonl" : "text")) return data::document_rule(trained_on);
  return is_lines ? data::DocumentRule{config::DocumentKind::record, "", "text"}
                  : data::DocumentRule();
}

/// Tokens of text for one evaluation; `warnings` are on the text.
std::shared_ptr<const TemporaryFile> write_tokens(const RunModel& model,
                                                  std::vector<std::string>& warnings,
                                                  const fs::path& path,
                                                  const fs::path& cache_dir,
                                                  const data::Progress& progress) {
  const data::Tokenizer tokenizer = model_tokenizer(model);
  const data::DocumentRule rule = rule_for(path, model.experiment.data);
  const data::TextRange text = data::all_text(path, rule);
  Hasher unused;
  for (const data::InvalidText& file : data::hash_files(*text.files, text.end, unused, progress))
    warnings.push_back(data::describe(file));
  make_directories(cache_dir);
  auto tokens = std::make_shared<const TemporaryFile>(cache_dir /
                                                      ("evaluate-" + process_digits() + ".tokens"));
  data::TokenFileWriter writer(tokens->path(), tokenizer.vocab_size(), tokenizer.fingerprint());
  data::write_text(text, tokenizer, progress, writer);
  writer.finish();
  return tokens;
}

EvaluationData whole_token_file(const RunModel& model,
                                const fs::path& tokens,
                                const std::string& name) {
  const data::TokenFile file(tokens);
  require_own_tokenizer(model, file.tokenizer_fingerprint(), name);
  file.verify_hash();
  worker::TokenSource source;
  source.path = fs::absolute(tokens).string();
  source.rows =
      data::rows_of(file.size(), model.experiment.train.seq_len, data::LastRow::may_be_short);
  source.short_last_row = true;
  source.document_start = document_start_of(model);
  if (source.rows == 0) {
    throw Error(name + " is too short: it has " + with_thousands(file.size()) + " token(s)",
                "the first token is only read, each later one is scored: two are the least");
  }
  return {name, {source}, nullptr};
}

EvaluationData prepared(const RunModel& model,
                        config::Experiment experiment,
                        const std::string& name,
                        const fs::path& cache_dir,
                        const data::Progress& progress) {
  // Of generated training text as little as can be: it is not what is wanted.
  experiment.train.max_steps = 1;
  experiment.train.batch_size = 1;
  experiment.train.validation_rows = 0;
  experiment.train.seq_len = model.experiment.train.seq_len;
  experiment.train.document_mask = model.experiment.train.document_mask;
  const data::DataFingerprints known =
      name.empty() ? data::DataFingerprints{model.data_fingerprint, model.tokenizer_fingerprint}
                   : data::DataFingerprints{};
  const data::PreparedData made = data::prepare(experiment, cache_dir, progress, false, known);
  if (name.empty())
    require_unchanged(model, experiment, made);
  else
    require_own_ids(model, experiment.data, made, name);
  EvaluationData data;
  data.name = name.empty() ? "its own held-out rows" : "the held-out rows of " + name;
  data.tokens = token_sources(made, made.evaluation);
  data.warnings = made.warnings;
  return data;
}

}  // namespace

int64_t EvaluationData::rows() const {
  int64_t sum = 0;
  for (const worker::TokenSource& source : tokens) sum += source.rows;
  return sum;
}

EvaluationData own_evaluation_data(const RunModel& model,
                                   const fs::path& cache_dir,
                                   const data::Progress& progress) {
  if (model.data_fingerprint.empty()) {
    throw Error("this model was not trained here, so it has no held-out rows of its own",
                "name what to evaluate on: --data FILE, a folder of .txt files, or a config");
  }
  return prepared(model, model.experiment, "", cache_dir, progress);
}

EvaluationData evaluation_data_of(const RunModel& model,
                                  const config::Experiment& experiment,
                                  const std::string& name,
                                  const fs::path& cache_dir,
                                  const data::Progress& progress) {
  return prepared(model, experiment, name, cache_dir, progress);
}

EvaluationData evaluation_data_at(const RunModel& model,
                                  const fs::path& path,
                                  const fs::path& cache_dir,
                                  const data::Progress& progress) {
  const std::string name = "'" + shown_path(path) + "'";
  const fs::path inside = path / "evaluation.tokens";
  if (is_file(inside)) return whole_token_file(model, inside, name);
  if (is_token_file(path)) return whole_token_file(model, path, name);
  std::vector<std::string> warnings;
  const auto tokens = write_tokens(model, warnings, path, cache_dir, progress);
  EvaluationData data = whole_token_file(model, tokens->path(), name);
  data.temporary_tokens = tokens;
  data.warnings = std::move(warnings);
  return data;
}

namespace {

int64_t bytes_of(const RunModel& model, const EvaluationData& data) {
  if (model.tokenizer.empty()) return 0;
  const data::Tokenizer tokenizer = model_tokenizer(model);
  const int seq_len = model.experiment.train.seq_len;
  int64_t bytes = 0;
  for (const worker::TokenSource& source : data.tokens) {
    const data::TokenFile file(source.path);
    bytes += source.pad_id ? data::scored_bytes_of_documents(file, source.rows, seq_len, tokenizer)
                           : data::scored_bytes(
                                 file, std::min(source.rows * seq_len, file.size() - 1), tokenizer);
  }
  return bytes;
}

}  // namespace

namespace {

/// Throws Error where the worker cannot have evaluated the rows that it was given.
void require_possible(const ModelEvaluation& evaluation, const EvaluationData& data, int seq_len) {
  int64_t most = 0;
  bool each_is_scored = true;
  for (const worker::TokenSource& source : data.tokens) {
    const int64_t targets = source.rows * seq_len;
    most += source.short_last_row
                ? std::min(targets, data::TokenFile(source.path).size() - source.first_row - 1)
                : targets;
    // Of documents, tasks and rows cut at borders of documents some targets may not be scored.
    if (source.pad_id || source.document_start || source.path.empty()) each_is_scored = false;
  }
  worker::require_not_negative("loss", evaluation.loss);
  const bool fits = each_is_scored ? evaluation.tokens == most
                                   : evaluation.tokens >= 1 && evaluation.tokens <= most;
  if (!fits) {
    throw Error("the worker evaluated " + with_thousands(evaluation.tokens) +
                    " tokens, and its rows have " + with_thousands(most),
                ExitCode::failed);
  }
  worker::require_pace(evaluation.tokens, evaluation.seconds);
}

}  // namespace

namespace {

/// A model without a loss can be compared with nothing.
void require_finite(double loss, const RunModel& model, const EvaluationData& data) {
  if (std::isfinite(loss)) return;
  const auto hint = [&]() -> std::string {
    if (!weights::ModelFiles::are_in(model.checkpoint))
      return "forge cannot read the weights of this backend: its own program can tell whether they "
             "are finite";
    const std::string broken =
        weights::not_finite_text(weights::ModelFiles(model.checkpoint).tensors());
    return broken.empty() ? "its weights are finite, and what is computed with them is not: "
                            "--precision float64 shows whether rounding is the reason"
                          : "its weights are broken: " + broken;
  };
  throw Error("the loss of " + model.name + " on " + data.name + " is " +
                  (std::isnan(loss) ? "not a number" : "infinite"),
              hint(),
              ExitCode::failed);
}

}  // namespace

/// What a worker's result must hold.
template <class Visitor>
void fields(Visitor& visit, ModelEvaluation& evaluation) {
  visit.field("loss", evaluation.loss);
  visit.field("tokens", evaluation.tokens);
  visit.field("seconds", evaluation.seconds);
}

ModelEvaluation evaluate(const RunModel& model,
                         const EvaluationData& data,
                         const std::string& device,
                         int threads,
                         const worker::Backend& backend,
                         worker::Launcher& launcher,
                         const std::function<void(double)>& progress) {
  worker::Request request = model_request(worker::Job::evaluate, model, device, threads);
  request.evaluation_tokens = data.tokens;
  request_answers(model.experiment, request);
  Scorer scorer(request, model.tokenizer);
  std::string device_name;
  const auto listen = [&](const worker::Event& event) {
    if (const auto* made = std::get_if<worker::Progress>(&event)) progress(made->fraction);
    if (const auto* machine = std::get_if<worker::Environment>(&event))
      device_name = machine->device_name;
    if (const auto* answers = std::get_if<worker::Answers>(&event)) scorer.add(*answers);
  };
  const nlohmann::json values =
      worker::job_result(launcher, backend.command(request), request, listen);
  auto evaluation = worker::read_fields<ModelEvaluation>(values, "the worker's result");
  require_possible(evaluation, data, model.experiment.train.seq_len);
  require_finite(evaluation.loss, model, data);
  evaluation.device = device_name;
  evaluation.perplexity = std::exp(evaluation.loss);
  evaluation.scores = scorer.finish();
  evaluation.bytes = bytes_of(model, data);
  if (evaluation.bytes > 0) {
    const double nats = evaluation.loss * static_cast<double>(evaluation.tokens);
    evaluation.bits_per_byte = nats / std::log(2.0) / static_cast<double>(evaluation.bytes);
  }
  return evaluation;
}

}  // namespace forge::run
