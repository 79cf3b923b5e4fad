#include "core/config/check.h"

#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/base/whole_id.h"
#include "core/config/backend.h"
#include "core/config/fields.h"
#include "core/config/own_blocks.h"
#include "core/config/schedule.h"
#include "core/model/kinds.h"

namespace forge::config {

int rank(const Setting& setting) {
  if (setting.layer == default_layer) return 0;
  if (setting.layer == config_layer) return 1;
  return setting.layer == command_line_layer ? rank_of_command_line : 2;
}

namespace {

bool is_in(const SourceSpan& span, const SourceSpan& file) {
  return span.source && file.source && span.source->name == file.source->name;
}

}  // namespace

bool is_inherited(const Draft& draft, const std::string& key, const std::string& because) {
  const Origin& cause = draft.origins.at(because);
  const SourceSpan& given = draft.origins.at(key).set_by.origin;
  if (is_in(given, cause.set_by.origin)) return false;
  for (const SourceSpan* from = given.via.get(); from; from = from->via.get()) {
    if (is_in(*from, cause.set_by.origin)) return true;
  }
  return std::any_of(cause.overrode.begin(), cause.overrode.end(), [&](const Setting& other) {
    return is_in(given, other.origin);
  });
}

Error complaint(const Draft& draft,
                const std::vector<std::string>& keys,
                const std::string& message,
                const std::string& hint) {
  const Setting* guilty = nullptr;
  for (const std::string& key : keys) {
    const Setting& setting = draft.origins.at(key).set_by;
    if (!guilty || rank(setting) > rank(*guilty)) guilty = &setting;
  }
  return Error(message, guilty->origin, hint);
}

void drop_unused(Draft& draft,
                 const std::string& key,
                 const std::string& because,
                 const std::string& reason,
                 const std::string& hint) {
  const Setting& setting = draft.origins.at(key).set_by;
  if (rank(setting) >= rank(draft.origins.at(because).set_by)) {
    throw Error(key + " " + setting.text + " " + reason, setting.origin, hint);
  }
  derive(draft, key, because, default_text(*find_key(key)));
}

void refuse_unused(Draft& draft,
                   const std::string& key,
                   const std::string& because,
                   const std::string& reason,
                   const std::string& hint) {
  if (draft.origins.at(key).set_by.layer == default_layer) return;
  Experiment without = draft.experiment;
  if (!reset_key(without, key)) return;
  drop_unused(draft, key, because, reason, hint);
  draft.experiment = std::move(without);
}

void check_word(const Draft& draft,
                const std::string& key,
                const std::string& word,
                const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  throw complaint(draft,
                  {key},
                  "'" + key + "' must be one of " + join(known, ", ") + ", not '" + word + "'",
                  did_you_mean(word, known));
}

fs::path meant_path(const Setting& setting, const std::string& path, const PathBases& bases) {
  const char* home = std::getenv("HOME");
  if (starts_with(path, "~/") && home) return fs::path(home) / path.substr(2);
  if (starts_with(path, corpora_prefix)) {
    return corpora_dir() / path.substr(std::string_view(corpora_prefix).size());
  }
  const bool typed = setting.layer == command_line_layer;
  const fs::path project = setting.project_folder;
  const fs::path& base = typed             ? bases.working_directory
                         : project.empty() ? bases.project_folder
                                           : project;
  return (base / path).lexically_normal();
}

bool is_json_lines(const fs::path& path) {
  const bool compressed = path.extension() == ".gz" || path.extension() == ".zst";
  const fs::path extension = (compressed ? path.stem() : path).extension();
  return extension == ".jsonl" || extension == ".ndjson";
}

void complete_path(Draft& draft,
                   const std::string& key,
                   std::string& path,
                   const PathBases& bases) {
  if (path.empty()) return;
  const Setting& setting = draft.origins.at(key).set_by;
  const fs::path meant = meant_path(setting, path, bases);
  const std::string hint =
      starts_with(path, corpora_prefix)
          ? quoted_command("forge data get " +
                           shell_quoted(meant.parent_path().filename().string())) +
                " gets it"
      : setting.layer == command_line_layer
          ? "a path on the command line is relative to the current folder"
          : "a path in a template is relative to its project's folder";
  path = meant.string();
  if (!path_exists(meant)) throw complaint(draft, {key}, "no file " + shown_path(meant), hint);
  if (::access(meant.c_str(), R_OK) != 0) {
    throw complaint(draft, {key}, "no permission to read " + shown_path(meant));
  }
}

namespace {

void check_words(const Draft& draft) {
  const Experiment& e = draft.experiment;
  check_word(
      draft, "data.source", e.data.source, {"toy_stories", "text", "jsonl", "mixture", "task"});
  check_word(draft,
             "tokenizer.kind",
             e.tokenizer.kind,
             {"byte_level_bpe", "sentencepiece", "tiktoken", "none"});
  check_word(draft, "optimizer.type", e.optimizer.type, optimizer_types());
  check_word(draft, "schedule.type", e.schedule.type, schedule_types());
}

void check_vocabulary(const Draft& draft) {
  const int model = draft.experiment.model.vocab_size;
  const int tokenizer = draft.experiment.tokenizer.vocab_size;
  if (model == tokenizer) return;
  throw complaint(draft,
                  {"model.vocab_size", "tokenizer.vocab_size"},
                  quoted("model.vocab_size", model) + " differs from " +
                      quoted("tokenizer.vocab_size", tokenizer),
                  "the model has one embedding for each of the tokenizer's entries");
}

void complete_steps(Draft& draft) {
  TrainConfig& t = draft.experiment.train;
  if (t.max_steps > 0 && t.max_tokens > 0) {
    throw complaint(draft,
                    {"train.max_tokens", "train.max_steps"},
                    "both train.max_steps and train.max_tokens are given",
                    "give the one that is to end the training");
  }
  if (t.max_steps == 0 && t.max_tokens == 0) {
    throw complaint(draft,
                    {"train.max_steps", "train.max_tokens"},
                    "neither train.max_steps nor train.max_tokens is above 0",
                    "give the one that is to end the training");
  }
  if (t.max_steps > 0) return;
  const int64_t tokens_per_step = int64_t{t.batch_size} * t.seq_len;
  t.max_steps = t.max_tokens / tokens_per_step + (t.max_tokens % tokens_per_step != 0 ? 1 : 0);
  derive(draft, "train.max_steps", "train.max_tokens", std::to_string(t.max_steps));
}

void check_annealing(const Draft& draft) {
  const ScheduleConfig& s = draft.experiment.schedule;
  if (s.checkpoint_step < 0 || s.checkpoint_step >= s.warmup_steps + s.cooldown_steps) return;
  throw complaint(draft,
                  {"schedule.checkpoint_step"},
                  quoted("schedule.checkpoint_step", s.checkpoint_step) +
                      " lies before the end of warm-up and cooldown, step " +
                      std::to_string(s.warmup_steps + s.cooldown_steps),
                  "annealing can begin only from the constant rate");
}

/// A cycle is at least a step long, or its number would have no meaning.
void check_cycle(const Draft& draft) {
  const ScheduleConfig& s = draft.experiment.schedule;
  const auto max_steps = static_cast<double>(draft.experiment.train.max_steps);
  if (s.cycle_length * max_steps >= 1) return;
  throw complaint(draft,
                  {"schedule.cycle_length"},
                  "schedule.cycle_length " + shortest(s.cycle_length) + " of " +
                      std::to_string(draft.experiment.train.max_steps) +
                      " steps is less than a step",
                  "it is the length of a cycle over the whole run: 1 is one cycle");
}

/// The keys of the section that only some schedules read.
const std::map<std::string, std::vector<std::string>>& readers_of_schedule() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"cooldown_steps", {"infinite_lr"}},
      {"constant_lr", {"infinite_lr"}},
      {"min_lr", {"infinite_lr"}},
      {"tau", {"infinite_lr"}},
      {"checkpoint_step", {"infinite_lr"}},
      {"lr_min_ratio", {"cosine", "linear", "inv_sqrt", "wsd"}},
      {"cycle_length", {"cosine", "wsd"}},
      {"cosine_theta", {"cosine"}},
      {"decay_fraction", {"wsd"}},
      {"exp_factor", {"inv_sqrt"}}};
  return all;
}

/// Refuses keys that somebody gave beside a schedule which does not read them. One that is
/// inherited from a template with another schedule stays, without effect.
void check_read_by_schedule(const Draft& draft) {
  const std::string type_key = "schedule.type", type = draft.experiment.schedule.type;
  for (const auto& [name, types] : readers_of_schedule()) {
    if (std::find(types.begin(), types.end(), type) != types.end()) continue;
    const std::string key = "schedule." + name;
    const Setting& setting = draft.origins.at(key).set_by;
    const bool is_own = setting.layer != default_layer &&
                        rank(setting) >= rank(draft.origins.at(type_key).set_by) &&
                        !is_inherited(draft, key, type_key);
    if (!is_own || setting.text == default_text(*find_key(key))) continue;
    throw Error(key + " " + setting.text + " has no meaning where schedule.type is " + type +
                    ": it is a key of " + join(types, ", "),
                setting.origin,
                type == "infinite_lr" || name != "min_lr"
                    ? "leave it out, or choose one of them as schedule.type"
                    : "schedule.lr_min_ratio is the lowest rate over optimizer.lr");
  }
}

void check_schedule(const Draft& draft) {
  check_read_by_schedule(draft);
  const ScheduleConfig& s = draft.experiment.schedule;
  if (s.type == "infinite_lr") check_annealing(draft);
  if (s.type == "cosine" || s.type == "wsd") check_cycle(draft);
  if (s.type == "wsd" && s.lr_min_ratio == 0) {
    throw complaint(draft,
                    {"schedule.lr_min_ratio", "schedule.type"},
                    "schedule.lr_min_ratio 0 cannot be reached under schedule.type wsd",
                    "its rate falls as 1 / (p / lr_min_ratio + 1 - p): give a ratio above 0");
  }
  if (s.type == "inv_sqrt" && s.warmup_steps == 0) {
    throw complaint(
        draft,
        {"schedule.warmup_steps", "schedule.type"},
        "schedule.type inv_sqrt needs schedule.warmup_steps above 0",
        "its rate is lr at the end of the warm-up and falls as (warmup / step)^exp_factor");
  }
}

void check_z_loss(Draft& draft) {
  const ZLossConfig& z_loss = draft.experiment.train.z_loss;
  if (z_loss.kind == ZLossKind::none) {
    refuse_unused(draft,
                  "train.z_loss.coefficient",
                  "train.z_loss.kind",
                  "has no meaning where train.z_loss.kind is none",
                  "set train.z_loss.kind palm or lingua_code");
  } else if (z_loss.coefficient == 0) {
    throw complaint(
        draft,
        {"train.z_loss.coefficient", "train.z_loss.kind"},
        "train.z_loss.coefficient 0 leaves nothing of train.z_loss.kind " + name_of(z_loss.kind),
        "set train.z_loss.kind none, or give a coefficient above 0");
  }
}

void check_precision(Draft& draft) {
  const Precision precision = draft.experiment.train.precision;
  if (precision == Precision::bfloat16) return;
  refuse_unused(draft,
                "train.bfloat16_weights",
                "train.precision",
                "has no meaning where train.precision is " + name_of(precision),
                "set train.precision bfloat16");
}

bool is_power_of_two(int number) { return number > 0 && (number & (number - 1)) == 0; }

/// Slots are leaves of a binary tree, each of as many rows. Who sets another batch size than that
/// of a template need not know its slots: they are as many as divide it.
void check_gradient_slots(Draft& draft) {
  TrainConfig& t = draft.experiment.train;
  const std::string shown = quoted("train.gradient_slots", t.gradient_slots);
  if (!is_power_of_two(t.gradient_slots)) {
    throw complaint(draft,
                    {"train.gradient_slots"},
                    shown + " is no power of two",
                    "gradients of the slots are added as a binary tree: 1, 2, 4, 8 …");
  }
  const bool is_of_earlier_layer = rank(draft.origins.at("train.gradient_slots").set_by) <
                                   rank(draft.origins.at("train.batch_size").set_by);
  if (t.batch_size % t.gradient_slots != 0 && is_of_earlier_layer) {
    t.gradient_slots = std::gcd(t.batch_size, t.gradient_slots);
    derive(draft, "train.gradient_slots", "train.batch_size", std::to_string(t.gradient_slots));
  } else if (t.batch_size % t.gradient_slots != 0) {
    throw complaint(draft,
                    {"train.gradient_slots", "train.batch_size"},
                    shown + " does not divide " + quoted("train.batch_size", t.batch_size),
                    "each slot has as many rows of a step");
  }
}

/// Each process computes as many slots.
void check_processes(const Draft& draft) {
  const schema::CountOrAuto processes = draft.experiment.parallel.processes;
  if (processes.is_auto()) return;
  const std::string shown = quoted("parallel.processes", processes.count);
  if (!is_power_of_two(processes.count)) {
    throw complaint(draft,
                    {"parallel.processes"},
                    shown + " is no power of two",
                    "each process computes as many of train.gradient_slots: 1, 2, 4, 8 …");
  }
  const int slots = draft.experiment.train.gradient_slots;
  if (processes.count <= slots) return;
  throw complaint(draft,
                  {"parallel.processes", "train.gradient_slots"},
                  shown + " is more than " + quoted("train.gradient_slots", slots),
                  "each process needs a slot: train.gradient_slots: " +
                      std::to_string(processes.count) + " is the least, and makes another run");
}

/// A state that goes on from token to token does not end with a document.
void check_document_mask(const Draft& draft) {
  const Experiment& e = draft.experiment;
  if (!e.train.document_mask) return;
  const std::vector<model::LayerSpec>& layers = e.model.layers;
  for (const model::BlockKind* kind : model::mixer_kinds()) {
    const bool is_used = std::any_of(
        layers.begin(), layers.end(), [&](const auto& layer) { return layer.mixer == kind->name; });
    if (!is_used || !kind->crosses_documents) continue;
    throw complaint(
        draft,
        {"train.document_mask", "model.layers"},
        "train.document_mask true is not possible with " + std::string(kind->name) +
            " in model.layers",
        "its state goes on from one document of a row to the next, as in its released "
        "code: set train.document_mask false" +
            std::string(e.data.rows == RowKind::padded
                            ? ": with data.rows padded each document has a row anyway"
                            : ", and data.rows padded, which gives each document a row"));
  }
}

/// Whether a model may be meant that is not whole, or not there for a moment: a file, a link that
/// leads nowhere, a folder that is empty or has weights.
bool may_be_broken_model(const fs::path& path) {
  std::error_code unreadable;
  if (!fs::exists(fs::symlink_status(path, unreadable))) return false;
  if (!is_folder(path)) return true;
  const std::vector<fs::path> entries = folder_entries(path);
  return entries.empty() || std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
           return entry.extension() == ".safetensors";
         });
}

/// A folder, of a run or of a model, is meant relative to where it was written; what is none names
/// a run, even where another folder happens to be called so. In a template a run has its whole id:
/// the beginning of one would take any run that is called so where a folder is away.
void complete_initial_weights(Draft& draft, const PathBases& bases) {
  const std::string key = "train.initial_weights";
  std::string& name = draft.experiment.train.initial_weights;
  if (name.empty()) return;
  const fs::path meant = meant_path(draft.origins.at(key).set_by, name, bases);
  if (path_exists(meant / "config.json")) {
    name = meant.string();
  } else if (name.find('/') != std::string::npos) {
    complete_path(draft, key, name, bases);  // says where it looked
  } else if (!is_whole_id(name)) {
    const bool is_broken = may_be_broken_model(meant);
    if (draft.origins.at(key).set_by.layer == command_line_layer && !is_broken) return;
    throw complaint(draft,
                    {key},
                    (is_broken ? "no model in " : "no folder ") + shown_path(meant),
                    is_broken ? "a folder of a model has a config.json; a run is named by its id"
                              : "here a run is named by its whole id");
  }
}

}  // namespace

void check_and_complete(Draft& draft, const PathBases& bases, const ProblemSink& on_problem) {
  using Kind = Problem::Kind;
  attempt(on_problem, Kind::wrong_value, [&] { check_words(draft); });
  check_and_complete_task(draft, bases, on_problem);
  const bool has_model = check_and_complete_model(draft, bases, on_problem);
  attempt(on_problem, Kind::disagreement, [&] { complete_steps(draft); });
  attempt(on_problem, Kind::disagreement, [&] { check_precision(draft); });
  attempt(on_problem, Kind::disagreement, [&] { check_gradient_slots(draft); });
  attempt(on_problem, Kind::disagreement, [&] { check_processes(draft); });
  attempt(on_problem, Kind::disagreement, [&] { check_z_loss(draft); });
  check_and_complete_optimizer(draft, on_problem);
  attempt(on_problem, Kind::disagreement, [&] { check_schedule(draft); });
  if (has_model) attempt(on_problem, Kind::disagreement, [&] { check_vocabulary(draft); });
  if (has_model) attempt(on_problem, Kind::disagreement, [&] { check_document_mask(draft); });
  check_and_complete_data(draft, bases, on_problem);
  attempt(on_problem, Kind::missing_file, [&] { complete_initial_weights(draft, bases); });
  attempt(on_problem, Kind::disagreement, [&] { choose_backend_of_own_blocks(draft); });
  attempt(on_problem, Kind::wrong_value, [&] { complete_backend(draft, bases); });
}

}  // namespace forge::config
