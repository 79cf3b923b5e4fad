#include "core/data/prepare_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/data/dataset.h"
#include "core/data/tasks/spec.h"
#include "core/data/token_folder.h"

namespace forge::data {
namespace {

void require_kind(const config::Experiment& experiment, const Tokenizer& tokenizer) {
  const std::string& kind = experiment.tokenizer.kind;
  const bool in_characters = tokenizer.vocabulary().alphabet == Alphabet::characters;
  if (in_characters == (kind == "sentencepiece")) return;
  throw Error("tokenizer.kind is " + kind + ", but '" + shown_path(experiment.tokenizer.path) +
                  "' is of BPE over " + (in_characters ? "characters" : "bytes"),
              {},
              std::string("set tokenizer.kind to ") +
                  (in_characters ? "sentencepiece" : "byte_level_bpe or tiktoken"));
}

/// No id may lie beyond the model's embedding.
void require_fitting_model(const config::Experiment& experiment, const Tokenizer& tokenizer) {
  const int model_size = experiment.model.vocab_size;
  if (tokenizer.vocab_size() <= model_size) return;
  throw Error("the tokenizer has " + with_thousands(tokenizer.vocab_size()) +
                  " entries, but model.vocab_size is " + with_thousands(model_size),
              {},
              "set model.vocab_size to " + std::to_string(tokenizer.vocab_size()));
}

/// The id in front of each document, and nowhere else: text never becomes a special id.
int32_t document_start(const Tokenizer& tokenizer) {
  if (tokenizer.bos_id() >= 0) return tokenizer.bos_id();
  throw Error("train.document_mask is true, but the tokenizer has no BOS to begin a document with",
              {},
              "set train.document_mask false, or give the tokenizer a token <|BOS|>");
}

/// What stands behind a document in its row. It is never scored, nor seen by what is, so that any
/// id would do.
int32_t pad_id(const Tokenizer& tokenizer) {
  return std::max({tokenizer.pad_id() >= 0 ? tokenizer.pad_id() : tokenizer.eos_id(), 0});
}

[[noreturn]] void refuse_as_too_small(const config::Experiment& experiment,
                                      Split split,
                                      int64_t tokens) {
  const config::DataConfig& data = experiment.data;
  const bool training = split == Split::training;
  const int64_t needed = experiment.train.seq_len + 1;
  std::string hint = "give more text";
  if (tokens > 1) hint += ", or set train.seq_len to at most " + std::to_string(tokens - 1);
  if (!training && data.evaluation_path.empty()) {
    hint += ", or raise data.held_out_fraction (" + shortest(data.held_out_fraction) + ")";
  }
  const bool other = !training && !data.evaluation_path.empty();
  throw Error("'" + shown_path(other ? data.evaluation_path : data.path) + "' is too small: its " +
                  (training ? "training" : "held-out") + " part has " + with_thousands(tokens) +
                  " tokens, one row of train.seq_len " + with_thousands(experiment.train.seq_len) +
                  " needs " + with_thousands(needed),
              {},
              hint);
}

/// Rows of the tokens of one text, which are made if they are not there.
PreparedRows rows_of(Split split,
                     int64_t wanted,
                     const config::Experiment& experiment,
                     const TextSource& source,
                     const Tokenizer& tokenizer,
                     const TokenFolder& folder) {
  const int seq_len = experiment.train.seq_len;
  const bool padded = experiment.data.rows == config::RowKind::padded;
  // A source of which a mixture uses no row yet has its file all the same.
  const int64_t least = std::max<int64_t>(1, wanted);
  const TokenAmount amount = padded ? TokenAmount{0, least} : TokenAmount{least * seq_len + 1, 0};
  const TokenAmount held = folder.tokens(split, amount, source, tokenizer);
  const int64_t rows = padded ? held.documents : rows_of(held.tokens, seq_len, LastRow::whole);
  if (rows == 0) refuse_as_too_small(experiment, split, held.tokens);
  // Of text all training rows are used, so that an epoch is the whole text.
  const bool all = split == Split::training && !source.is_endless();
  return {"", 1, folder.tokens_path(split), all ? rows : std::min(rows, wanted)};
}

/// Parts the held-out rows: those that are reported come first, those that runs are chosen by after
/// them.
void part_selection(const config::Experiment& experiment, Demand demand, PreparedData& prepared) {
  PreparedRows& held_out = prepared.evaluation.back();
  if (demand.selection == 0) return;
  const int64_t wanted = demand.evaluation + demand.selection;
  if (held_out.rows < wanted) {
    throw Error(
        "the held-out part of '" +
            shown_path(experiment.data.evaluation_path.empty() ? experiment.data.path
                                                               : experiment.data.evaluation_path) +
            "' has " + with_thousands(held_out.rows) +
            " rows, train.eval_rows and train.selection_rows need " + with_thousands(wanted),
        {},
        "lower one of them, or give more held-out text");
  }
  PreparedRows selection = held_out;
  selection.first_row = demand.evaluation;
  selection.rows = demand.selection;
  held_out.rows = demand.evaluation;
  prepared.selection.push_back(std::move(selection));
}

}  // namespace

nlohmann::json words_of(const config::Experiment& experiment) {
  const nlohmann::json all = config::to_json(experiment);
  return {{"data", all.at("data")}, {"tokenizer", all.at("tokenizer")}};
}

PreparedData prepared_with(const config::Experiment& experiment, const Tokenizer& tokenizer) {
  require_kind(experiment, tokenizer);
  require_fitting_model(experiment, tokenizer);
  PreparedData prepared;
  if (experiment.train.document_mask) prepared.document_start = document_start(tokenizer);
  if (experiment.data.rows == config::RowKind::padded) prepared.pad_id = pad_id(tokenizer);
  prepared.tokenizer_fingerprint = tokenizer.fingerprint();
  return prepared;
}

PreparedData prepare_text(const Work& work, const TextSource& source, Demand demand) {
  const config::Experiment& experiment = work.experiment;
  const TokenFolder folder(
      work.folder / source.folder_name() / tokenizer_folder_name(experiment.tokenizer),
      work.progress,
      work.check_content);
  const Tokenizer tokenizer =
      folder.tokenizer(experiment.tokenizer, [&] { return source.sample(); });
  PreparedData prepared = prepared_with(experiment, tokenizer);
  prepared.tokenizer = folder.tokenizer_path();
  prepared.data_fingerprint = source.fingerprint();
  if (experiment.data.is_task()) prepared.task = tasks::make_spec(experiment.data);
  const auto add = [&](Split split, int64_t wanted, std::vector<PreparedRows>& to) {
    to.push_back(rows_of(split, wanted, experiment, source, tokenizer, folder));
  };
  add(Split::training, demand.training, prepared.train);
  add(Split::evaluation, demand.evaluation + demand.selection, prepared.evaluation);
  part_selection(experiment, demand, prepared);
  folder.describe(words_of(experiment));
  return prepared;
}

}  // namespace forge::data
