#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/schema.h"
#include "core/config/optimizer.h"
#include "core/model/cost.h"

#include <nlohmann/json_fwd.hpp>

/// The resolved configuration of one run as plain structs. Every key of the YAML schema is one
/// field here under the same name; core/config/fields.h lists them with their meaning and limits.
/// Programs read these values and never look a key up by name.
namespace forge::config {

using model::Bfloat16Weights;
using model::ModelConfig;
using model::Precision;
using model::Recompute;

enum class ZLossKind { none, palm, lingua_code };
enum class RowOrder { sequential, shuffled };
/// What a document is: a file, a line, the lines up to a blank one, the text up to a separator, or
/// a record of JSON.
enum class DocumentKind { file, line, block, separator, record };
/// Rows are windows of all documents put one after another, or each begins with a document and is
/// padded behind it.
enum class RowKind { packed, padded };
/// Which is followed where the paper on the synthetic tasks and its released code differ.
enum class TaskVariant { paper, code };

/// A synthetic pretraining task (docs/TASKS.md). A key that the task does not have stays 0 or "".
struct TaskConfig {
  std::string name;  ///< depo1 | depo2 | brevo1 | brevo2 | mano | lano | capo | copy
  TaskVariant variant = TaskVariant::paper;
  int max_nodes = 0;          ///< depo, brevo: N, the names of a cycle or vertices of a graph
  int max_hops = 0;           ///< depo: K
  int max_operators = 0;      ///< mano: L
  int length = 0;             ///< copy: N, tokens of the permutation
  int scored_tokens = 0;      ///< copy: number of copied tokens with loss, the first; 0: all
  std::string grammar;        ///< lano: a JSON file; "": one is drawn
  uint64_t grammar_seed = 0;  ///< lano: of the grammar that is drawn
  int people = 0;             ///< capo: N

  /// A task of text, which a tokenizer turns into ids; the others have ids of their own.
  bool is_text() const { return name == "capo"; }
  /// Its scores are of what a model generates, for the first train.eval_prompts questions alone.
  bool is_scored_by_prompts() const {
    return name == "brevo1" || name == "brevo2" || name == "lano";
  }
};

/// A text, and what of it is for training and for evaluation.
struct TextConfig {
  std::string source = "text";                  ///< text | jsonl | toy_stories
  std::string path;                             ///< a file or a folder of files
  DocumentKind documents = DocumentKind::file;  ///< resolved: record where the source is jsonl
  std::string separator = "<|endoftext|>";      ///< between documents that are told apart by it
  std::string field = "text";                   ///< jsonl: holds the text
  double training_fraction = 1.0;   ///< the first part of the training documents is used
  std::string evaluation_path;      ///< files for evaluation; "": a part of path is held out
  double held_out_fraction = 0.05;  ///< the last part of the bytes or documents, for evaluation
};

/// One of several texts that a run is trained on. What it does not have is the same for all.
struct SourceConfig : TextConfig {
  double weight = 1;  ///< its share of the training rows over that of all; 0: it is left out
};

/// All data of a run. Its source may also be mixture or task.
struct DataConfig : TextConfig {
  DataConfig() { source = "toy_stories"; }
  uint64_t seed = 1;                   ///< of the generated text
  std::optional<uint64_t> order_seed;  ///< of the rows' order; none: see Experiment::order_seed
  RowKind rows = RowKind::packed;
  RowOrder order = RowOrder::shuffled;
  std::map<std::string, SourceConfig> sources;  ///< by name: what a mixture is made of
  TaskConfig task;                              ///< where source is task

  bool is_task() const { return source == "task"; }
  /// Rows are ids that no tokenizer made.
  bool has_own_ids() const { return is_task() && !task.is_text(); }
};

struct TokenizerConfig {
  std::string kind = "byte_level_bpe";  ///< resolved: none where a task has ids of its own
  int vocab_size = 2000;
  std::string path;  ///< a tokenizer file to use instead of training one
};

struct ZLossConfig {
  ZLossKind kind = ZLossKind::none;
  double coefficient = 1e-4;
};

struct TrainConfig {
  int batch_size = 32;
  int micro_batch_size = 0;  ///< rows computed at once, their gradients added up; 0: all of a step
  int gradient_slots = 1;    ///< equal parts of a step's rows whose gradients are added as a tree
  Recompute recompute = Recompute::none;  ///< the same bits in less memory
  int seq_len = 512;
  int64_t max_steps = 0;   ///< resolved: from max_tokens where that is given
  int64_t max_tokens = 0;  ///< 0: max_steps decides
  Precision precision = Precision::float32;
  Bfloat16Weights bfloat16_weights = Bfloat16Weights::none;
  double grad_clip = 0;               ///< largest global gradient norm, 0: no clipping
  std::optional<bool> deterministic;  ///< none until the device is known: see is_deterministic
  int64_t log_every = 10;
  int64_t eval_every = 500;         ///< 0: only at the end
  int64_t checkpoint_every = 0;     ///< 0: only at the end and when stopped
  int keep_checkpoints = 2;         ///< the newest ones
  bool keep_best = true;            ///< and the one with the lowest evaluation loss
  int64_t max_bad_steps = 10;       ///< steps in a row with a loss that no longer makes sense
  double hung_after_seconds = 120;  ///< without a sign of work
  int eval_rows = 500;              ///< held-out rows of the test set: eval_loss
  int validation_rows = 0;  ///< held-out rows behind them: validation_loss, to choose runs by
  int eval_batch_size = 32;
  int eval_prompts = 100;       ///< prompts to continue, of tasks that are scored so
  bool document_mask = false;   ///< attention and convolution stay within a document
  std::string initial_weights;  ///< a run or a model folder to begin from; "": they are drawn
  std::optional<uint64_t> initial_weights_seed;  ///< none: see Experiment::weights_seed
  ZLossConfig z_loss;

  /// What of it decides the memory, with AdamW's moments and one process.
  model::TrainingShape shape() const {
    const int of_slot = batch_size / gradient_slots;
    const int rows = micro_batch_size > 0 ? std::min(micro_batch_size, of_slot) : of_slot;
    model::TrainingShape shape = {rows, seq_len, precision, bfloat16_weights, document_mask};
    shape.recompute = recompute;
    shape.gradient_slots = gradient_slots;
    return shape;
  }
  /// On a device of that type, "cpu" or "cuda": where nobody asked, a CPU is, since it costs
  /// nothing there, and a GPU is not.
  bool is_deterministic(const std::string& device_type) const {
    return deterministic.value_or(device_type == "cpu");
  }
};

/// Learning rate over steps; formulas in core/config/schedule.h.
struct ScheduleConfig {
  std::string type = "infinite_lr";  ///< infinite_lr | cosine | linear | inv_sqrt | wsd | constant
  int64_t warmup_steps = 0;
  int64_t cooldown_steps = 0;
  double constant_lr = 3.75e-5;
  double min_lr = 1e-8;
  double tau = 1e4;
  int64_t checkpoint_step = -1;  ///< infinite_lr: step at which annealing begins, -1: never
  double lr_min_ratio = 0.1;     ///< cosine, linear, inv_sqrt, wsd: lowest rate over lr
  double cycle_length = 1.0;     ///< cosine, wsd: a cycle over the run
  double cosine_theta = 1.0;     ///< cosine: exponent of the progress
  double decay_fraction = 0.1;   ///< wsd: last part of a cycle, in which the rate falls
  double exp_factor = 0.5;       ///< inv_sqrt: the rate falls as step^-exp_factor
};

/// How many processes train a run together, each a part of the slots of train.gradient_slots. Their
/// number changes no bit.
struct ParallelConfig {
  schema::CountOrAuto processes;  ///< auto: as many as there are GPUs, one where there is none
  double timeout_seconds = 600;   ///< for which they wait for each other to start
};

/// A program of anybody's that trains (docs/PROTOCOL.md). It is started without a shell.
struct ExternalConfig {
  std::vector<std::string> command;  ///< program and arguments; none: the backend is forge's own
  std::string working_directory;     ///< resolved: absolute
  std::vector<std::string> environment;  ///< NAME=VALUE, added to forge's own
};

struct Experiment {
  std::string name;
  std::string description;
  uint64_t seed = 42;  ///< of all that chance decides in a run, unless it has a seed of its own
  std::string profile = "auto";      ///< resolved: the profile that `auto` became
  std::string backend = "libtorch";  ///< libtorch, external or the name of a declared one
  ExternalConfig external;           ///< resolved: as declared, where the backend has a name
  ModelConfig model;
  DataConfig data;
  TokenizerConfig tokenizer;
  TrainConfig train;
  ParallelConfig parallel;
  OptimizerConfig optimizer;
  ScheduleConfig schedule;

  /// What decides the memory of its training, in each process; `auto` counts as one.
  model::TrainingShape training_shape() const {
    model::TrainingShape shape = train.shape();
    shape.moments = optimizer.moments();
    if (!parallel.processes.is_auto()) shape.processes = parallel.processes.count;
    return shape;
  }
  /// Of the drawn initial weights.
  uint64_t weights_seed() const { return train.initial_weights_seed.value_or(seed); }
  /// Of the order of the training rows; of a task, of the instances that it is trained on.
  uint64_t order_seed() const { return data.order_seed.value_or(seed); }
};

/// Every key of the experiment under its schema name, in alphabetical order, but for the sections
/// of mixers that the model does not have: those are there only where they are set.
nlohmann::json to_json(const Experiment& experiment);
/// With those sections, too.
nlohmann::json to_complete_json(const Experiment& experiment);

/// Inverse of to_json, for a config.json that forge wrote. A missing key keeps its default. Throws
/// Error at an unknown or ill-typed one: another version of forge wrote it.
Experiment experiment_from_json(const nlohmann::json& json);

/// Gives the key or section of a dotted path, such as "data.sources.NAME.field", its default.
/// Returns whether it had another value.
bool reset_key(Experiment& experiment, const std::string& path);

/// The section `data` of an experiment that has one source of a mixture and nothing else.
DataConfig data_of_source(const DataConfig& mixture, const SourceConfig& source);

// Which keys of data.task each synthetic task has.

/// Names of the tasks.
const std::vector<std::string>& task_names();

/// A key of data.task that is a size, such as max_nodes.
struct SizeKey {
  const char* key;
  int TaskConfig::*field;
};
const std::vector<SizeKey>& size_keys();

/// A size that a task has.
struct TaskSize : SizeKey {
  int least;  ///< 0: it may be left out
  const char* example;
};

/// The sizes of a task; empty where there is no such task.
std::vector<TaskSize> sizes_of(const std::string& task);

/// Ids of a task that has own ids, whose sizes are given: dense, from 0 on. Of lano those of three
/// terminals, which every published grammar has and every drawn one.
int task_vocab_size(const TaskConfig& task);

/// Whether training that has done `step` steps under the config `before` is what it would be under
/// `now`, so that it can continue under `now`. How long training lasts, what is measured on the way
/// and what is kept may differ, and where data lies; the schedule may differ, too, as long as every
/// step done had the learning rate that `now` gives it. Throws Error naming the first difference.
void check_resumable(const Experiment& before, const Experiment& now, int64_t step);

}  // namespace forge::config
