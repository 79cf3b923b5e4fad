#include "core/config/check.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/config/fields.h"

namespace forge::config {
namespace {

/// The task that a key of data.task belongs to is another one, or there is none.
void refuse_key(Draft& draft, const std::string& key) {
  const DataConfig& data = draft.experiment.data;
  const bool is_task = data.is_task();
  refuse_unused(draft,
                "data.task." + key,
                is_task ? "data.task.name" : "data.source",
                is_task ? "has no meaning for the task " + data.task.name
                        : "has no meaning where data.source is " + data.source,
                is_task ? "" : "--set data.source=task");
}

void check_name(const Draft& draft) {
  const DataConfig& data = draft.experiment.data;
  if (!data.is_task()) return;
  if (data.task.name.empty()) {
    throw complaint(draft,
                    {"data.source", "data.task.name"},
                    "data.source is task, and data.task.name names none",
                    "one of " + join(task_names(), ", "));
  }
  check_word(draft, "data.task.name", data.task.name, task_names());
}

void check_sizes(Draft& draft) {
  const TaskConfig& task = draft.experiment.data.task;
  const std::vector<TaskSize> own = sizes_of(task.name);
  for (const SizeKey& size : size_keys()) {
    const auto found = std::find_if(
        own.begin(), own.end(), [&](const TaskSize& of) { return of.field == size.field; });
    if (found == own.end()) {
      refuse_key(draft, size.key);
      continue;
    }
    const int value = task.*size.field;
    if (value >= found->least) continue;
    const std::string key = std::string("data.task.") + size.key;
    throw complaint(draft,
                    {"data.task.name", key},
                    value == 0
                        ? "the task " + task.name + " needs " + key
                        : quoted(key, value) + " is less than " + std::to_string(found->least) +
                              ", the least of the task " + task.name,
                    "for example " + key + ": " + found->example);
  }
}

void check_other_keys(Draft& draft) {
  const DataConfig& data = draft.experiment.data;
  if (!data.is_task()) {
    refuse_key(draft, "name");
    refuse_key(draft, "variant");
  }
  if (!data.is_task() || data.task.name != "lano") {
    refuse_key(draft, "grammar");
    refuse_key(draft, "grammar_seed");
  }
  if (data.task.grammar.empty()) return;
  refuse_unused(draft,
                "data.task.grammar_seed",
                "data.task.grammar",
                "has no meaning where data.task.grammar names a file",
                "leave data.task.grammar out to have a grammar drawn");
}

/// Rows of ids: what belongs to text has no meaning.
void check_own_ids(Draft& draft) {
  Experiment& e = draft.experiment;
  const std::string reason = "has no meaning for the task " + e.data.task.name;
  const char* name = "data.task.name";
  refuse_unused(draft, "data.rows", name, reason);
  refuse_unused(draft, "train.document_mask", name, reason + ", whose rows are read as a whole");
  refuse_unused(draft, "tokenizer.path", name, reason);
  e.tokenizer.kind = "none";
  derive(draft, "tokenizer.kind", name, "none");
}

void complete_vocabulary(Draft& draft) {
  Experiment& e = draft.experiment;
  const int needed = task_vocab_size(e.data.task);
  if (draft.origins.at("model.vocab_size").set_by.layer == default_layer) {
    e.model.vocab_size = needed;
    derive(draft, "model.vocab_size", "data.task.name", std::to_string(needed));
  }
  if (e.model.vocab_size < needed) {
    throw complaint(draft,
                    {"model.vocab_size", "data.task.name"},
                    quoted("model.vocab_size", e.model.vocab_size) +
                        " is less than the ids of the task " + e.data.task.name + ", " +
                        with_thousands(needed),
                    "leave model.vocab_size out: it follows from the task");
  }
  e.tokenizer.vocab_size = e.model.vocab_size;
  derive(draft, "tokenizer.vocab_size", "model.vocab_size", std::to_string(e.model.vocab_size));
}

/// A worker answers a row of lano with every log probability, in one line of 2^20 bytes at most.
constexpr int64_t most_row_probabilities = 1 << 16;

void check_row_length(const Draft& draft) {
  const Experiment& e = draft.experiment;
  const int64_t most = most_row_probabilities / task_vocab_size(e.data.task);
  if (e.data.task.name != "lano" || e.train.seq_len <= most) return;
  throw complaint(draft,
                  {"train.seq_len", "data.task.name"},
                  quoted("train.seq_len", e.train.seq_len) + " is more than " +
                      with_thousands(most) + ", the longest rows that the task lano is scored on",
                  "set train.seq_len to " + std::to_string(most) + " or less");
}

}  // namespace

void check_and_complete_task(Draft& draft, const PathBases& bases, const ProblemSink& on_problem) {
  using Kind = Problem::Kind;
  const bool named = attempt(on_problem, Kind::wrong_value, [&] { check_name(draft); });
  // Nobody can say which keys a task has that is not known.
  if (named) attempt(on_problem, Kind::disagreement, [&] { check_other_keys(draft); });
  const bool sized = named && attempt(on_problem, Kind::disagreement, [&] { check_sizes(draft); });
  DataConfig& data = draft.experiment.data;
  attempt(on_problem, Kind::missing_file, [&] {
    complete_path(draft, "data.task.grammar", data.task.grammar, bases);
  });
  if (!sized || !data.has_own_ids()) return;
  attempt(on_problem, Kind::disagreement, [&] { check_own_ids(draft); });
  attempt(on_problem, Kind::disagreement, [&] { complete_vocabulary(draft); });
  attempt(on_problem, Kind::disagreement, [&] { check_row_length(draft); });
}

}  // namespace forge::config
