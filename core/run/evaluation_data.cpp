#include "core/run/evaluation_data.h"

#include <unistd.h>

#include <cstring>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/paths.h"
#include "core/data/corpus/corpus.h"
#include "core/data/dataset.h"
#include "core/data/prepare.h"
#include "core/data/token_file.h"
#include "core/data/token_file_writer.h"
#include "core/data/token_stream.h"
#include "core/data/tokenizer_json.h"
#include "core/run/token_sources.h"

namespace forge::run {
namespace {

const std::string magic = "forgetok";

data::Tokenizer tokenizer_of(const RunModel& model) {
  if (model.tokenizer.empty()) {
    throw Error("the model has no tokenizer that forge can use",
                {},
                "forge reads a tokenizer.json of BPE; see docs/HUGGING_FACE.md");
  }
  return data::load_tokenizer(model.tokenizer);
}

/// Ids of another vocabulary would give a loss that means nothing.
void require_own_tokenizer(const RunModel& model,
                           const std::string& fingerprint,
                           const std::string& what) {
  if (tokenizer_of(model).fingerprint() == fingerprint) return;
  throw Error(what + " is in the tokens of another tokenizer than the model's",
              {},
              "give the text itself: it is read with the model's own tokenizer");
}

/// The same for rows of a task: both must be of ids that no tokenizer made.
void require_own_ids(const RunModel& model,
                     const data::PreparedData& made,
                     const std::string& name) {
  const bool reads_text = !model.tokenizer.empty();
  const bool is_text = !made.tokenizer.empty();
  if (reads_text && is_text) {
    require_own_tokenizer(model, made.tokenizer_fingerprint, name);
  } else if (reads_text) {
    throw Error(name + " is a task with ids of its own, and the model reads those of a tokenizer");
  } else if (is_text) {
    throw Error(name + " is text, and the model has no tokenizer to read it with");
  }
}

std::optional<int32_t> document_start_of(const RunModel& model) {
  if (!model.experiment.train.document_mask) return std::nullopt;
  const int32_t bos = tokenizer_of(model).bos_id();
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

/// Tokens of text for one evaluation, in a file that goes with its last owner.
std::shared_ptr<const fs::path> write_tokens(const RunModel& model,
                                             const fs::path& path,
                                             const fs::path& cache_dir,
                                             const data::Progress& progress) {
  const data::Tokenizer tokenizer = tokenizer_of(model);
  data::DocumentRule rule;
  if (config::is_json_lines(path)) rule = {config::DocumentKind::record, "", "text"};
  const data::TextRange text = data::all_text(path, rule);
  make_directories(cache_dir);
  const std::shared_ptr<const fs::path> tokens(
      new fs::path(cache_dir / ("evaluate-" + std::to_string(::getpid()) + ".tokens")),
      [](const fs::path* file) {
        std::error_code ignored;
        fs::remove(*file, ignored);
        delete file;
      });
  data::TokenFileWriter writer(*tokens, tokenizer.vocab_size(), tokenizer.fingerprint());
  data::write_text(text, tokenizer, progress, writer);
  writer.finish();
  return tokens;
}

EvaluationData whole_token_file(const RunModel& model,
                                const fs::path& tokens,
                                const std::string& name) {
  const data::TokenFile file(tokens);
  require_own_tokenizer(model, file.tokenizer_fingerprint(), name);
  file.check_content();
  protocol::TokenSource source;
  source.path = fs::absolute(tokens).string();
  source.rows =
      data::rows_of(file.size(), model.experiment.train.seq_len, data::LastRow::may_be_short);
  source.short_last_row = true;
  source.document_start = document_start_of(model);
  if (source.rows == 0) {
    throw Error(name + " is too short: it has " + with_thousands(file.size()) + " token(s)",
                {},
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
  experiment.train.selection_rows = 0;
  experiment.train.seq_len = model.experiment.train.seq_len;
  experiment.train.document_mask = model.experiment.train.document_mask;
  const data::PreparedData made = data::prepare(experiment, cache_dir, progress);
  require_own_ids(model, made, name);
  if (name.empty() && made.data_fingerprint != model.data_fingerprint) {
    throw Error("the text that the run was trained on has changed since: '" +
                    shown_path(experiment.data.path) + "'",
                {},
                "name what to evaluate on with --data; its held-out rows of then are gone",
                ExitCode::failed);
  }
  EvaluationData data;
  data.name = name.empty() ? "its own held-out rows" : "the held-out rows of " + name;
  data.tokens = evaluation_sources(made);
  return data;
}

}  // namespace

int64_t EvaluationData::rows() const {
  int64_t sum = 0;
  for (const protocol::TokenSource& source : tokens) sum += source.rows;
  return sum;
}

EvaluationData own_evaluation_data(const RunModel& model,
                                   const fs::path& cache_dir,
                                   const data::Progress& progress) {
  if (model.data_fingerprint.empty()) {
    throw Error("this model was not trained here, so it has no held-out rows of its own",
                {},
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
  std::error_code ignored;
  if (fs::is_regular_file(inside, ignored)) return whole_token_file(model, inside, name);
  if (is_token_file(path)) return whole_token_file(model, path, name);
  const std::shared_ptr<const fs::path> tokens = write_tokens(model, path, cache_dir, progress);
  EvaluationData data = whole_token_file(model, *tokens, name);
  data.keeps_tokens = tokens;
  return data;
}

}  // namespace forge::run
