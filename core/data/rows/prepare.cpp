#include "core/data/rows/prepare.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/data/rows/dataset.h"
#include "core/data/rows/text_source.h"
#include "core/data/rows/token_cache.h"
#include "core/data/tasks/task_rows.h"
#include "core/data/tasks/task_spec.h"
#include "core/data/tokenizer/tokenizer.h"

namespace forge::data {
namespace {

constexpr int64_t most_instances = int64_t{1} << 44;  // that a task can tell apart
constexpr int64_t looked_at = 8;  // rows: where texts are long, not every row has a target

/// Every id must have a row in the model's embedding. `what` has `ids` of them: "the task copy".
void require_fitting_model(const std::string& what, int ids, const model::ModelConfig& model) {
  if (ids <= model.vocab_size) return;
  throw Error(what + " has " + with_thousands(ids) + " ids, but model.vocab_size is " +
                  with_thousands(model.vocab_size),
              "set model.vocab_size to " + std::to_string(ids));
}

void require_scored_targets(const tasks::Task& task, uint64_t seed, Split split, int seq_len) {
  const tasks::TaskRows rows(task, seed, split, seq_len);
  std::vector<int32_t> inputs(static_cast<size_t>(seq_len));
  std::vector<int32_t> targets(inputs.size());
  for (int64_t row = 0; row < looked_at; ++row) {
    rows.fill(row, inputs.data(), targets.data());
    for (const int32_t target : targets) {
      if (target != unscored_target) return;
    }
  }
  throw Error("no text of the task " + task.name() + " fits a row of train.seq_len " +
                  with_thousands(seq_len) + (split == Split::evaluation ? " for evaluation" : ""),
              "raise train.seq_len, or make the task smaller");
}

/// Rows of training that the run consumes. Endless text has at most `most` tokens. `text` and
/// `hint` are for the message where the run needs more.
int64_t consumed_rows(const config::TrainConfig& train,
                      int64_t row_tokens,
                      int64_t most,
                      const std::string& text,
                      const std::string& hint) {
  const int64_t steps = std::max<int64_t>(1, train.max_steps);
  const int64_t step_tokens = train.batch_size * row_tokens;
  if (steps > most / step_tokens) {
    throw Error("train.max_steps " + with_thousands(steps) + " of " + with_thousands(step_tokens) +
                    " tokens each need more " + text + " than " + with_thousands(most) + " tokens",
                hint);
  }
  return steps * train.batch_size;
}

}  // namespace

PreparedData prepare_task(const config::Experiment& experiment) {
  PreparedData prepared;
  prepared.task = tasks::make_spec(experiment.data);
  const auto task = tasks::task_of(prepared.task);
  require_fitting_model("the task " + task->name(), task->vocab_size(), experiment.model);
  const int seq_len = experiment.train.seq_len;
  require_scored_targets(*task, experiment.order_seed(), Split::training, seq_len);
  require_scored_targets(*task, experiment.data.seed, Split::evaluation, seq_len);
  prepared.data_fingerprint = tasks::spec_fingerprint(prepared.task);
  const config::TrainConfig& train = experiment.train;
  // No more instances begin in a row than it has tokens.
  const int64_t rows = consumed_rows(
      train, int64_t{train.seq_len} + 1, most_instances, "text of a task", "lower train.max_steps");
  prepared.train.push_back({"", 1, "", rows});
  prepared.evaluation.push_back({"", 1, "", train.eval_rows});
  if (train.validation_rows > 0)
    prepared.validation.push_back({"", 1, "", train.validation_rows, train.eval_rows});
  return prepared;
}

namespace {

/// Rows of one text that a run uses.
struct RowsNeeded {
  int64_t training = 0;    ///< of endless text; of other text all rows are used
  int64_t evaluation = 0;  ///< at most
  int64_t validation = 0;  ///< after those of evaluation; then all of both must be there
  bool is_all = true;      ///< the run trains on no other text
};

/// How a run's data is prepared, whatever it is made of.
struct PrepareJob {
  const config::Experiment& experiment;
  std::filesystem::path folder;  ///< that holds the folders of all texts
  IndexFolder index;
  const Progress& progress;
  bool verify_hashes;
  DataFingerprints known;
};

bool is_gone(const std::string& path) { return !path.empty() && !path_exists(path); }

fs::path tokenizer_folder(const PrepareJob& job, const std::string& text) {
  const config::TokenizerConfig& tokenizer = job.experiment.tokenizer;
  if (is_gone(tokenizer.path) && !job.known.tokenizer.empty()) {
    if (const auto known = find_tokenizer_folder(job.folder / text, job.known.tokenizer))
      return *known;
  }
  return job.folder / text / tokenizer_folder_name(tokenizer);
}

/// The text that the data names. Where it is gone, that of the known fingerprint, if the cache has
/// something of it.
TextSource open_text(const PrepareJob& job,
                     const config::DataConfig& data,
                     const std::string& known,
                     const Progress& progress) {
  const bool may_be_cached = (is_gone(data.path) || is_gone(data.evaluation_path)) &&
                             !known.empty() &&
                             is_folder(job.folder / text_folder_name(data.source, known));
  return may_be_cached ? TextSource::gone(data, known) : TextSource(data, progress, job.index);
}

void require_kind(const config::Experiment& experiment, const Tokenizer& tokenizer) {
  const std::string& kind = experiment.tokenizer.kind;
  const bool in_characters = tokenizer.vocabulary().alphabet == Alphabet::characters;
  if (in_characters == (kind == "sentencepiece")) return;
  throw Error("tokenizer.kind is " + kind + ", but '" + shown_path(experiment.tokenizer.path) +
                  "' is of BPE over " + (in_characters ? "characters" : "bytes"),
              std::string("set tokenizer.kind to ") +
                  (in_characters ? "sentencepiece" : "byte_level_bpe or tiktoken"));
}

/// The id in front of each document, and nowhere else: text never becomes a special id.
int32_t document_start(const Tokenizer& tokenizer) {
  if (tokenizer.bos_id() >= 0) return tokenizer.bos_id();
  throw Error("train.document_mask is true, but the tokenizer has no BOS to begin a document with",
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
              hint);
}

/// Rows of the tokens of one text, which are made if they are not there.
PreparedRows rows_of(Split split,
                     int64_t wanted,
                     const config::Experiment& experiment,
                     const TextSource& source,
                     const Tokenizer& tokenizer,
                     const TokenCacheEntry& folder) {
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

/// Splits the held-out rows: those of train.eval_rows come first, then those of
/// train.validation_rows.
void split_held_out(const config::Experiment& experiment,
                    RowsNeeded needed,
                    PreparedData& prepared) {
  PreparedRows& held_out = prepared.evaluation.back();
  if (needed.validation == 0) return;
  const int64_t wanted = needed.evaluation + needed.validation;
  if (held_out.rows < wanted) {
    throw Error(
        "the held-out part of '" +
            shown_path(experiment.data.evaluation_path.empty() ? experiment.data.path
                                                               : experiment.data.evaluation_path) +
            "' has " + with_thousands(held_out.rows) +
            " rows, train.eval_rows and train.validation_rows need " + with_thousands(wanted),
        "lower one of them, or give more held-out text");
  }
  PreparedRows validation = held_out;
  validation.first_row = needed.evaluation;
  validation.rows = needed.validation;
  held_out.rows = needed.evaluation;
  prepared.validation.push_back(std::move(validation));
}

/// What evaluation_text.json calls the rows of a run: what is known of the text follows from them
/// and from the folder that holds it.
std::string rows_key(const config::Experiment& experiment, const PreparedData& prepared) {
  const bool padded = experiment.data.rows == config::RowKind::padded;
  return std::to_string(prepared.train.at(0).rows) + " and " +
         std::to_string(prepared.evaluation.at(0).rows) + (padded ? " padded" : "") + " rows of " +
         std::to_string(experiment.train.seq_len);
}

EvaluationText evaluation_text_from(const nlohmann::json& json) {
  const auto number = [&](const char* key) {
    const auto found = json.find(key);
    const bool is_known = found != json.end() && found->is_number();
    return is_known ? std::optional<double>(found->get<double>()) : std::nullopt;
  };
  return {number("entropy_floor"), number("repeated_sentences")};
}

/// From the folder's evaluation_text.json, or else made, and kept there if it may be.
EvaluationText known_evaluation_text(const PrepareJob& job,
                                     const PreparedData& prepared,
                                     const TokenCacheEntry& folder) {
  const fs::path file = prepared.train.at(0).tokens.parent_path() / "evaluation_text.json";
  nlohmann::json all = nlohmann::json::object();
  try {
    if (path_exists(file)) all = read_json_file(file);
  } catch (const Error&) {  // made anew
  }
  if (!all.is_object()) all = nlohmann::json::object();
  const std::string key = rows_key(job.experiment, prepared);
  const auto known = all.find(key);
  if (known != all.end() && known->is_object()) return evaluation_text_from(*known);
  const EvaluationText text = describe_evaluation_text(job.experiment, prepared, job.progress);
  nlohmann::json& entry = all[key] = nlohmann::json::object();
  if (text.entropy_floor) entry["entropy_floor"] = *text.entropy_floor;
  if (text.repeated_sentences) entry["repeated_sentences"] = *text.repeated_sentences;
  if (folder.is_writable()) write_file_atomic(file, json_text(all, 2) + "\n");
  return text;
}

/// What the files of a folder of the cache were made from.
nlohmann::json provenance_of(const config::Experiment& experiment) {
  const nlohmann::json all = config::to_json(experiment);
  return {{"data", all.at("data")}, {"tokenizer", all.at("tokenizer")}};
}

/// What follows from the tokenizer alone. Throws Error where the experiment cannot have it.
PreparedData prepared_with(const config::Experiment& experiment, const Tokenizer& tokenizer) {
  require_kind(experiment, tokenizer);
  require_fitting_model("the tokenizer", tokenizer.vocab_size(), experiment.model);
  PreparedData prepared;
  if (experiment.train.document_mask) prepared.document_start = document_start(tokenizer);
  if (experiment.data.rows == config::RowKind::padded) prepared.pad_id = pad_id(tokenizer);
  prepared.tokenizer_fingerprint = tokenizer.fingerprint();
  return prepared;
}

/// Prepares a text, alone or as a source of a mixture.
PreparedData prepare_text(const PrepareJob& job, const TextSource& source, RowsNeeded needed) {
  const config::Experiment& experiment = job.experiment;
  const TokenCacheEntry folder(
      tokenizer_folder(job, source.folder_name()), job.progress, job.verify_hashes);
  const Tokenizer tokenizer =
      folder.tokenizer(experiment.tokenizer, [&] { return source.sample(); });
  PreparedData prepared = prepared_with(experiment, tokenizer);
  prepared.tokenizer = folder.tokenizer_path();
  prepared.data_fingerprint = source.fingerprint();
  prepared.warnings = source.warnings();
  if (experiment.data.is_task()) prepared.task = tasks::make_spec(experiment.data);
  const auto add = [&](Split split, int64_t wanted, std::vector<PreparedRows>& to) {
    to.push_back(rows_of(split, wanted, experiment, source, tokenizer, folder));
  };
  add(Split::training, needed.training, prepared.train);
  add(Split::evaluation, needed.evaluation + needed.validation, prepared.evaluation);
  split_held_out(experiment, needed, prepared);
  if (needed.is_all && !experiment.data.is_task())
    prepared.evaluation_text = known_evaluation_text(job, prepared, folder);
  folder.write_provenance(provenance_of(experiment));
  return prepared;
}

constexpr int64_t max_generated_tokens = 100'000'000'000;  // 200 GB of token file

int64_t needed_train_rows(const config::TrainConfig& train) {
  return consumed_rows(train,
                       train.seq_len,
                       max_generated_tokens,
                       "generated text",
                       "lower train.max_steps, or train on text of your own with data.path");
}

/// One of the sources of a mixture.
struct MixtureSource {
  std::string name;
  double weight;
  config::Experiment experiment;  ///< with this source as all of its data
  TextSource text;
};

/// Runs `action`; an Error of it says which source it is about.
template <class Action>
auto naming(const std::string& source, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    throw Error("data.sources." + source + ": " + error.message(),
                error.where(),
                error.hint(),
                error.exit_code());
  }
}

/// Progress that says which source it is about.
Progress naming(const std::string& source, const Progress& progress) {
  return [&progress, source](double fraction, const std::string& phase) {
    if (progress) progress(fraction, source + ": " + phase);
  };
}

std::string mixture_name(const std::string& fingerprint) { return "mixture-" + fingerprint; }

/// The fingerprints of the texts of the known mixture, by the names of its sources, as the cache
/// has recorded them.
std::map<std::string, std::string> known_sources(const PrepareJob& job) {
  std::map<std::string, std::string> fingerprints;
  if (job.known.data.empty()) return fingerprints;
  for (const fs::path& folder : folder_entries(job.folder / mixture_name(job.known.data))) {
    try {
      const nlohmann::json provenance = read_json_file(folder / "made_from.json");
      for (const auto& [name, part] : provenance.at("parts").items()) {
        const std::string text = *fs::path(part.at("folder").get<std::string>()).begin();
        fingerprints[name] = text.substr(text.rfind('-') + 1);
      }
    } catch (const Error&) {
      continue;
    } catch (const nlohmann::json::exception&) {
      continue;  // as good as none
    }
  }
  return fingerprints;
}

std::vector<MixtureSource> open_sources(const PrepareJob& job) {
  std::vector<MixtureSource> sources;
  std::map<std::string, std::string> known = known_sources(job);
  for (const auto& [name, source] : job.experiment.data.sources) {
    if (source.weight == 0) continue;
    config::Experiment alone = job.experiment;
    alone.data = config::data_of_source(job.experiment.data, source);
    TextSource text = naming(name, [&, &named = name] {
      return open_text(job, alone.data, known[named], naming(named, job.progress));
    });
    sources.push_back({name, source.weight, std::move(alone), std::move(text)});
  }
  return sources;
}

Mixture mixture_of(const std::vector<MixtureSource>& sources) {
  std::vector<double> weights;
  for (const MixtureSource& source : sources) weights.push_back(source.weight);
  return Mixture(weights);
}

std::string fingerprint_of(const std::vector<MixtureSource>& sources, const Mixture& mixture) {
  std::string text = "mixture\n";
  for (size_t i = 0; i < sources.size(); ++i) {
    text += sources[i].name + " " + std::to_string(mixture.share(i)) + " " +
            sources[i].text.fingerprint() + "\n";
  }
  return hash_hex(text);
}

/// Text of all sources in proportion, to train one tokenizer on.
NextDocument sample_mixture(const std::vector<MixtureSource>& sources, const Mixture& mixture) {
  std::vector<NextDocument> samples;
  for (size_t i = 0; i < sources.size(); ++i) {
    const int64_t bytes = tokenizer_sample_bytes * mixture.share(i) / Mixture::period;
    samples.push_back(sources[i].text.sample(std::max<int64_t>(1, bytes)));
  }
  return [samples = std::move(samples), at = size_t{0}](std::string& document) mutable {
    for (; at < samples.size(); ++at) {
      if (samples[at](document)) return true;
    }
    return false;
  };
}

/// The one tokenizer of a mixture, in a folder of its own that names the others.
void make_tokenizer(const PrepareJob& job,
                    const std::vector<MixtureSource>& sources,
                    const Mixture& mixture,
                    PreparedData& all) {
  const config::Experiment& experiment = job.experiment;
  const TokenCacheEntry folder(
      tokenizer_folder(job, mixture_name(all.data_fingerprint)), job.progress, job.verify_hashes);
  const Tokenizer tokenizer =
      folder.tokenizer(experiment.tokenizer, [&] { return sample_mixture(sources, mixture); });
  // It refuses before there is work to do.
  all.tokenizer_fingerprint = prepared_with(experiment, tokenizer).tokenizer_fingerprint;
  all.tokenizer = folder.tokenizer_path();
}

/// Throws Error where a source's tokens are of another tokenizer than the mixture's: its file was
/// exchanged meanwhile.
void require_same_tokenizer(const PreparedData& one,
                            const PreparedData& all,
                            const config::TokenizerConfig& tokenizer) {
  if (one.tokenizer_fingerprint != all.tokenizer_fingerprint) throw tokenizer_changed(tokenizer);
}

/// Records in the mixture's folder where its sources are.
void describe_mixture(const PrepareJob& job, const PreparedData& prepared) {
  nlohmann::json provenance = provenance_of(job.experiment);
  for (const PreparedRows& rows : prepared.train) {
    const fs::path folder = rows.tokens.parent_path();
    provenance["parts"][rows.name] = {{"weight", rows.weight},
                                      {"folder", folder.lexically_relative(job.folder).string()}};
  }
  TokenCacheEntry(prepared.tokenizer.parent_path(), job.progress, false)
      .write_provenance(provenance);
}

/// Each source is cached as if it were the only one, with the mixture's tokenizer as a given file.
PreparedData prepare_mixture(const PrepareJob& job) {
  std::vector<MixtureSource> sources = open_sources(job);
  const Mixture mixture = mixture_of(sources);
  PreparedData all;
  all.data_fingerprint = fingerprint_of(sources, mixture);
  make_tokenizer(job, sources, mixture, all);
  const bool endless = std::any_of(
      sources.begin(), sources.end(), [](const auto& each) { return each.text.is_endless(); });
  const int64_t training = endless ? needed_train_rows(job.experiment.train) : 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    MixtureSource& source = sources[i];
    config::TokenizerConfig& tokenizer = source.experiment.tokenizer;
    if (tokenizer.path.empty()) tokenizer.path = all.tokenizer.string();
    const Progress progress = naming(source.name, job.progress);
    const config::TrainConfig& train = job.experiment.train;
    const int64_t reported = mixture.rows_of(i, train.eval_rows);
    const int64_t held_out = mixture.rows_of(i, int64_t{train.eval_rows} + train.validation_rows);
    const RowsNeeded needed{mixture.rows_of(i, training), reported, held_out - reported, false};
    PreparedData one = naming(source.name, [&] {
      return prepare_text(
          {source.experiment, job.folder, job.index, progress, job.verify_hashes, job.known},
          source.text,
          needed);
    });
    for (auto* rows : {&one.train, &one.evaluation, &one.validation}) {
      for (PreparedRows& file : *rows) {
        file.name = source.name;
        file.weight = source.weight;
      }
    }
    all.document_start = one.document_start;
    all.pad_id = one.pad_id;
    require_same_tokenizer(one, all, tokenizer);
    all.warnings.insert(all.warnings.end(), one.warnings.begin(), one.warnings.end());
    all.train.push_back(one.train[0]);
    if (one.evaluation[0].rows > 0) all.evaluation.push_back(one.evaluation[0]);
    if (!one.validation.empty()) all.validation.push_back(one.validation[0]);
  }
  describe_mixture(job, all);
  return all;
}

}  // namespace

PreparedData prepare(const config::Experiment& experiment,
                     const fs::path& cache_dir,
                     const Progress& progress,
                     bool verify_hashes,
                     const DataFingerprints& known) {
  if (experiment.data.has_own_ids()) return prepare_task(experiment);
  const IndexFolder index{verify_hashes ? fs::path() : cache_dir / "surveys"};
  const PrepareJob job{experiment, cache_dir / "data", index, progress, verify_hashes, known};
  if (experiment.data.source == "mixture") return prepare_mixture(job);
  const TextSource source = open_text(job, experiment.data, known.data, progress);
  const int64_t training = source.is_endless() ? needed_train_rows(experiment.train) : 0;
  return prepare_text(
      job, source, {training, experiment.train.eval_rows, experiment.train.validation_rows});
}

namespace {

/// The texts of an experiment, looked at.
struct FoundTexts {
  std::string fingerprint;
  std::string folder_name;  ///< in the cache
  std::vector<std::string> warnings;
};

FoundTexts find_texts(const PrepareJob& job) {
  if (job.experiment.data.source != "mixture") {
    const TextSource source = open_text(job, job.experiment.data, job.known.data, job.progress);
    return {source.fingerprint(), source.folder_name(), source.warnings()};
  }
  FoundTexts found;
  const std::vector<MixtureSource> sources = open_sources(job);
  for (const MixtureSource& source : sources) {
    const std::vector<std::string> own = source.text.warnings();
    found.warnings.insert(found.warnings.end(), own.begin(), own.end());
  }
  found.fingerprint = fingerprint_of(sources, mixture_of(sources));
  found.folder_name = mixture_name(found.fingerprint);
  return found;
}

}  // namespace

std::optional<DataFingerprints> find_fingerprints(const config::Experiment& experiment,
                                                  const fs::path& cache_dir,
                                                  const Progress& progress,
                                                  const DataFingerprints& known) {
  if (experiment.data.has_own_ids()) {
    const PreparedData task = prepare_task(experiment);
    return DataFingerprints{task.data_fingerprint, task.tokenizer_fingerprint};
  }
  const IndexFolder index{cache_dir / "surveys", false};
  const PrepareJob job{experiment, cache_dir / "data", index, progress, false, known};
  FoundTexts found = find_texts(job);
  const auto tokenizer =
      known_tokenizer(tokenizer_folder(job, found.folder_name), experiment.tokenizer);
  if (!tokenizer) return std::nullopt;
  return DataFingerprints{std::move(found.fingerprint),
                          prepared_with(experiment, *tokenizer).tokenizer_fingerprint,
                          std::move(found.warnings)};
}

DataFingerprints current_fingerprints(const config::Experiment& experiment,
                                      const fs::path& cache_dir,
                                      const Progress& progress) {
  if (experiment.data.has_own_ids())
    return {tasks::spec_fingerprint(tasks::make_spec(experiment.data)), ""};
  const IndexFolder index{cache_dir / "surveys"};
  const PrepareJob job{experiment, cache_dir / "data", index, progress, false, {}};
  FoundTexts found = find_texts(job);
  DataFingerprints current{std::move(found.fingerprint), "", std::move(found.warnings)};
  if (experiment.tokenizer.path.empty()) return current;
  if (const auto tokenizer =
          known_tokenizer(tokenizer_folder(job, found.folder_name), experiment.tokenizer))
    current.tokenizer = tokenizer->fingerprint();
  return current;
}

}  // namespace forge::data
