#include "core/config/check.h"

#include <unistd.h>

#include <cstdlib>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/keys.h"

namespace forge::config {
namespace {

int rank(const std::string& layer) {
  if (layer == default_layer) return 0;
  if (layer == config_layer) return 1;
  return layer == command_line_layer ? 3 : 2;
}

/// An Error at the place of the key, of several that disagree, that was set last.
Error complaint(const Draft& draft,
                const std::vector<std::string>& keys,
                const std::string& message,
                const std::string& hint = "") {
  const Setting* guilty = nullptr;
  for (const std::string& key : keys) {
    const Setting& setting = draft.origins.at(key).set_by;
    if (!guilty || rank(setting.layer) > rank(guilty->layer)) guilty = &setting;
  }
  return Error(message, guilty->origin, hint);
}

std::string quoted(const std::string& key, long long value) {
  return key + " " + std::to_string(value);
}

void check_required(const Draft& draft) {
  for (const Key& key : all_keys()) {
    if (!key.required || draft.origins.at(key.path).set_by.layer != default_layer) continue;
    const bool no_model =
        draft.experiment.model.hidden_size == 0 && draft.experiment.model.num_layers == 0;
    throw Error(
        "missing key '" + key.path + "'",
        draft.document,
        no_model && starts_with(key.path, "model.")
            ? "the config has no model: give the section 'model', or take it from a project "
              "of models with !call:forge:from_project"
            : key.path + ": " + key.help);
  }
}

/// Text that must be one of a few words which are not an enumeration of the schema.
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

void check_words(const Draft& draft) {
  const Experiment& e = draft.experiment;
  check_word(draft, "data.source", e.data.source, {"toy_stories", "text"});
  check_word(draft, "tokenizer.kind", e.tokenizer.kind, {"byte_level_bpe"});
  check_word(draft, "optimizer.type", e.optimizer.type, {"adamw"});
  check_word(draft, "schedule.type", e.schedule.type, {"infinite_lr", "cosine", "constant"});
}

void complete_heads(Draft& draft) {
  ModelConfig& m = draft.experiment.model;
  if (m.num_kv_heads == 0) {
    m.num_kv_heads = m.num_heads;
    derive(draft, "model.num_kv_heads", "model.num_heads", std::to_string(m.num_heads));
  }
  if (m.num_heads % m.num_kv_heads != 0) {
    throw complaint(draft,
                    {"model.num_kv_heads", "model.num_heads"},
                    quoted("model.num_kv_heads", m.num_kv_heads) + " does not divide " +
                        quoted("model.num_heads", m.num_heads),
                    "each key and value head serves the same number of query heads");
  }
  if (m.head_dim != 0) return;
  if (m.hidden_size % m.num_heads != 0) {
    throw complaint(draft,
                    {"model.num_heads", "model.hidden_size"},
                    quoted("model.num_heads", m.num_heads) + " does not divide " +
                        quoted("model.hidden_size", m.hidden_size),
                    "choose heads that divide it, or give model.head_dim");
  }
  m.head_dim = m.hidden_size / m.num_heads;
  derive(draft, "model.head_dim", "model.hidden_size", std::to_string(m.head_dim));
}

void check_rotation(const Draft& draft) {
  const ModelConfig& m = draft.experiment.model;
  if (m.position.kind != PositionKind::rope) return;
  if (!m.position.rope_dim && m.head_dim % 2 != 0) {
    throw complaint(draft,
                    {"model.head_dim", "model.num_heads"},
                    quoted("model.head_dim", m.head_dim) + " is odd",
                    "RoPE rotates channels in pairs; give an even head_dim or an even "
                    "model.position.rope_dim");
  }
  if (!m.position.rope_dim) return;
  const int rope_dim = *m.position.rope_dim;
  std::string fault;
  if (rope_dim % 2 != 0) fault = " is odd";
  if (rope_dim > m.head_dim) fault = " is more than " + quoted("model.head_dim", m.head_dim);
  if (fault.empty()) return;
  throw complaint(draft,
                  {"model.position.rope_dim"},
                  quoted("model.position.rope_dim", rope_dim) + fault,
                  "RoPE rotates pairs of a head's channels");
}

void complete_canon_set(Draft& draft) {
  std::string& set = draft.experiment.model.canon.set;
  const char* hint = "give letters of ABCD, each at most once; \"\" is no Canon layer";
  for (size_t i = 0; i < set.size(); ++i) {
    const std::string letter(1, set[i]);
    const std::string whole = "model.canon.set '" + set + "' ";
    if (letter.find_first_of("ABCD") == std::string::npos) {
      throw complaint(draft,
                      {"model.canon.set"},
                      whole + "has '" + letter + "', which is no Canon position",
                      hint);
    }
    if (set.find(letter, i + 1) != std::string::npos) {
      throw complaint(draft, {"model.canon.set"}, whole + "has '" + letter + "' twice", hint);
    }
  }
  std::sort(set.begin(), set.end());
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

void check_optimizer(const Draft& draft) {
  const std::vector<double>& betas = draft.experiment.optimizer.betas;
  const bool below_one = std::all_of(betas.begin(), betas.end(), [](double b) { return b < 1; });
  if (betas.size() == 2 && below_one) return;
  throw complaint(draft,
                  {"optimizer.betas"},
                  betas.size() == 2 ? "'optimizer.betas' must be below 1"
                                    : "'optimizer.betas' must be two numbers, not " +
                                          std::to_string(betas.size()),
                  "for example [0.9, 0.999]");
}

void check_schedule(const Draft& draft) {
  const ScheduleConfig& s = draft.experiment.schedule;
  if (s.type != "infinite_lr" || s.checkpoint_step < 0) return;
  if (s.checkpoint_step >= s.warmup_steps + s.cooldown_steps) return;
  throw complaint(draft,
                  {"schedule.checkpoint_step"},
                  quoted("schedule.checkpoint_step", s.checkpoint_step) +
                      " lies before the end of warm-up and cooldown, step " +
                      std::to_string(s.warmup_steps + s.cooldown_steps),
                  "annealing can begin only from the constant rate");
}

/// A path as meant where it was written, absolute; "~/" is the user's home.
fs::path meant_path(const Setting& setting, const std::string& path, const PathBases& bases) {
  const char* home = std::getenv("HOME");
  if (starts_with(path, "~/") && home) return fs::path(home) / path.substr(2);
  const bool typed = setting.layer == command_line_layer;
  return ((typed ? bases.working_directory : bases.project_folder) / path).lexically_normal();
}

void complete_path(Draft& draft,
                   const std::string& key,
                   std::string& path,
                   const PathBases& bases) {
  if (path.empty()) return;
  const Setting& setting = draft.origins.at(key).set_by;
  const fs::path meant = meant_path(setting, path, bases);
  std::error_code ignored;
  if (!fs::exists(meant, ignored)) {
    throw complaint(draft,
                    {key},
                    "no file " + shown_path(meant),
                    setting.layer == command_line_layer
                        ? "a path on the command line is relative to the current folder"
                        : "a path in a template is relative to its project's folder");
  }
  if (::access(meant.c_str(), R_OK) != 0) {
    throw complaint(draft, {key}, "no permission to read " + shown_path(meant));
  }
  path = meant.string();
}

void check_source(const Draft& draft) {
  const DataConfig& d = draft.experiment.data;
  if (d.source == "text" && d.path.empty()) {
    throw complaint(draft,
                    {"data.source", "data.path"},
                    "data.source is text, and data.path names no file",
                    "--set data.path=FILE, a text file or a folder of .txt files");
  }
  if (d.source != "text" && !d.path.empty()) {
    throw complaint(draft,
                    {"data.path", "data.source"},
                    "data.path is given, but data.source is " + d.source,
                    "files of your own are data.source text");
  }
}

void complete_data(Draft& draft, const PathBases& bases, const ProblemSink& on_problem) {
  Experiment& e = draft.experiment;
  attempt(on_problem, Problem::Kind::disagreement, [&] { check_source(draft); });
  attempt(on_problem, Problem::Kind::missing_file, [&] {
    complete_path(draft, "data.path", e.data.path, bases);
  });
  attempt(on_problem, Problem::Kind::missing_file, [&] {
    complete_path(draft, "tokenizer.path", e.tokenizer.path, bases);
  });
}

/// Returns whether the model has all keys that it needs.
bool check_model(Draft& draft, const ProblemSink& on_problem) {
  using Kind = Problem::Kind;
  // Arithmetic with what is missing means nothing.
  if (!attempt(on_problem, Kind::missing_key, [&] { check_required(draft); })) return false;
  attempt(on_problem, Kind::wrong_value, [&] {
    check_word(draft, "model.family", draft.experiment.model.family, {"llama_canon"});
  });
  if (attempt(on_problem, Kind::disagreement, [&] { complete_heads(draft); })) {
    attempt(on_problem, Kind::disagreement, [&] { check_rotation(draft); });
  }
  attempt(on_problem, Kind::wrong_value, [&] { complete_canon_set(draft); });
  return true;
}

/// A folder, of a run or of a model, is meant relative to where it was written; what is none names
/// a run, even where another folder happens to be called so.
void complete_initial_weights(Draft& draft, const PathBases& bases) {
  const std::string key = "train.initial_weights";
  std::string& name = draft.experiment.train.initial_weights;
  if (name.empty()) return;
  const fs::path meant = meant_path(draft.origins.at(key).set_by, name, bases);
  std::error_code unreadable;
  if (fs::exists(meant / "config.json", unreadable)) {
    name = meant.string();
  } else if (name.find('/') != std::string::npos) {
    complete_path(draft, key, name, bases);  // says where it looked
  }
}

}  // namespace

void check_and_complete_model(Draft& draft, const ProblemSink& on_problem) {
  check_model(draft, on_problem);
}

void check_and_complete(Draft& draft, const PathBases& bases, const ProblemSink& on_problem) {
  using Kind = Problem::Kind;
  const bool has_model = check_model(draft, on_problem);
  attempt(on_problem, Kind::wrong_value, [&] { check_words(draft); });
  if (has_model) attempt(on_problem, Kind::disagreement, [&] { check_vocabulary(draft); });
  attempt(on_problem, Kind::disagreement, [&] { complete_steps(draft); });
  attempt(on_problem, Kind::wrong_value, [&] { check_optimizer(draft); });
  attempt(on_problem, Kind::disagreement, [&] { check_schedule(draft); });
  complete_data(draft, bases, on_problem);
  attempt(on_problem, Kind::missing_file, [&] { complete_initial_weights(draft, bases); });
}

}  // namespace forge::config
