#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/experiment.h"
#include "core/data/common.h"

/// What forge and a worker say to each other: one JSON object a line (docs/PROTOCOL.md).
namespace forge::worker {

/// Version of the protocol, in the request and in the worker's first line. Raised when an old
/// reader would misunderstand a new line.
constexpr int version = 1;

/// Limits of a line: a longer or deeper one is rubbish, whatever it says.
constexpr size_t max_line_bytes = size_t{1} << 20;
/// Of a request: it names every weight of the model.
constexpr size_t max_request_bytes = size_t{1} << 25;
constexpr int max_depth = 32;
/// Longer texts in an event are truncated.
constexpr size_t max_text_bytes = size_t{1} << 14;

/// Exit status of a worker.
constexpr int exit_done = 0;
constexpr int exit_failed = 1;
constexpr int exit_wrong_request = 2;  ///< the request can never be done as it is
constexpr int exit_stopped = 3;        ///< stopped on request, after saving
constexpr int exit_storage = 4;        ///< what must be kept could not be written

/// A token file and the rows of it that are used; rows are windows of seq_len + 1 ids that begin
/// every seq_len ids, or the first seq_len ids of each document. Where there are several, training
/// takes its rows from them by their weights, evaluation one after another. With an empty path the
/// rows are those of a synthetic task, made as they are needed.
struct TokenSource {
  std::string path;
  int64_t rows = 0;
  std::optional<int32_t> document_start = {};  ///< begins a document; none: rows are not divided
  bool short_last_row = false;  ///< the last row may lack ids at its end, which are not scored
  std::optional<int32_t> pad_id = {};  ///< each row is one document, padded with this id
  std::string name = {};               ///< among several, ""
  double weight = 1;                   ///< among several: its share of the rows over that of all
  nlohmann::json task = nlohmann::json::object();  ///< core/data/tasks/spec.h; {}: it is none
  int64_t first_row = 0;                           ///< the rows begin with this one
};

/// The first of several, which are alike in all but file, name and weight; one without rows where
/// there is none.
TokenSource first_source(const std::vector<TokenSource>& sources);

enum class Job {
  describe,
  train,
  evaluate,
  generate,
  bench,
  logits,
  bench_ops,
  describe_blocks,
  bench_links
};
const std::vector<std::string>& names_of(Job);

/// Why a sample ended; `none`: it goes on.
enum class FinishReason { none, stop_text, end_of_sequence, length, context };
const std::vector<std::string>& names_of(FinishReason);

using data::AnswerKind;
const std::vector<std::string>& names_of(AnswerKind);

/// What `generate` makes: samples of how each prompt goes on.
struct Generation {
  std::vector<std::vector<int32_t>> prompts;  ///< token ids, each at least one
  int samples = 1;                            ///< of each prompt
  int64_t max_tokens = 1;                     ///< of a sample
  int64_t context = 1;     ///< the model reads no more tokens of a row than these
  double temperature = 0;  ///< how tokens are drawn: core/model/generation.h
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 0;
  std::vector<int32_t> end_ids;   ///< tokens that end a sample
  std::vector<std::string> stop;  ///< texts that end a sample
  std::string tokenizer;          ///< tokenizer.json, to find them; "" where there is none to find
  bool cache = true;              ///< false: every token is computed from its whole row again
  int batch_size = 1;             ///< samples at a time
};

/// What `bench_ops` measures.
struct OperationBench {
  std::vector<std::string> operations;  ///< names, or the beginnings of names; none: all
  std::vector<std::string> sizes;       ///< names of sizes; none: those that suit the device
  std::string precision = "float32";
};

/// The processes that do a job together. Each of them gets the same request, and its own number in
/// its environment: FORGE_RANK from 0 to FORGE_RANKS - 1.
struct Processes {
  int count = 1;
  std::string rendezvous;        ///< "file:" and a path where nothing is yet, to find each other by
  double timeout_seconds = 600;  ///< for which they wait for each other to start
  std::vector<std::string> devices = {};  ///< of each, by rank; empty: that of the request
  int rank = 0;   ///< of this process; the line is the same for all and has none
  int hosts = 1;  ///< that have as many of them each, with consecutive ranks
};
constexpr const char* rank_variable = "FORGE_RANK";
constexpr const char* ranks_variable = "FORGE_RANKS";

/// The line that a worker reads from its stdin, for `bench` the first one.
struct Request {
  Job job = Job::describe;
  std::string run_dir;                                   ///< absolute; checkpoints go below it
  std::string identity;                                  ///< key of the run, for its checkpoints
  nlohmann::json experiment = nlohmann::json::object();  ///< resolved, complete (config.json)
  std::vector<TokenSource> train_tokens;
  std::vector<TokenSource> evaluation_tokens;
  std::vector<TokenSource> validation_tokens;  ///< for validation_loss alone
  std::vector<AnswerKind> answers;             ///< that an evaluation gives beside the loss
  int64_t answer_rows = 0;                     ///< first rows that are asked for a `continuation`
  std::string resume_from;           ///< a checkpoint folder, "" = start from the initial weights
  std::string initial_weights;       ///< folder of the weights to begin from, "": they are drawn
  std::string initial_weights_hash;  ///< of their content, to be checked; "": whatever is there
  std::vector<nlohmann::json> weights;  ///< train, where they are drawn: weights_json()
  int64_t stop_after = 0;               ///< train: the step to save and stop after, 0: the last one
  std::string output;                   ///< logits: the file to write
  std::optional<Generation> generation;
  int64_t window_steps = 0;  ///< bench: steps of a window, 0: about a second's
  std::optional<OperationBench> operation_bench;
  std::vector<int64_t> link_bytes;     ///< bench_links: sizes of what processes exchange
  std::optional<Processes> processes;  ///< train, bench_links; none: one process alone
  std::string device = "auto";         ///< auto | cpu | cuda | cuda:N
  int threads = 0;                     ///< CPU threads, 0 = all cores
};

/// `weights` of a request: every weight of the model with its initial distribution,
/// [{"name": …, "shape": [out, in], "init": {"kind": "normal", "std": 0.02}}, …]. Kinds:
/// constant (value), normal (std), truncated_normal (std, cut), uniform (bound), log_uniform and
/// inverse_softplus (low, high).
std::vector<nlohmann::json> weights_json(const model::ModelConfig& model);

/// First line of every worker.
struct Hello {
  int protocol = version;
  std::string backend;            ///< "libtorch"
  std::string backend_version;    ///< of the program
  int numerics_version = 0;       ///< increased by hand when any bit of a loss may change
  bool saves_on_request = false;  ///< SIGUSR1 makes it save a checkpoint and go on
};

/// What the worker runs on. Sent for every job, after Hello.
struct Environment {
  std::string device_type;  ///< cpu | cuda
  std::string device_name;
  int threads = 0;
  int64_t memory_bytes = 0;                             ///< of the device
  std::vector<std::string> devices;                     ///< every device seen
  nlohmann::json libraries = nlohmann::json::object();  ///< name -> version or path, BLAS in use
};

/// What the backend can do on this machine: the last event of `describe`. Without it nothing is
/// known, and nothing is refused before a worker is started.
struct Supports {
  std::vector<std::string> jobs;  ///< names_of(Job)
  /// Config keys by their dotted names, each with a list of the values that it may have; a key that
  /// is not there may have any.
  nlohmann::json config = nlohmann::json::object();
};

/// Training begins (or goes on) at `first_step`.
struct Started {
  int64_t parameters = 0;
  int64_t first_step = 0;  ///< steps already done
  int64_t max_steps = 0;
  int64_t tokens_per_step = 0;
  /// Rows computed at once, their gradients added up; none: all of a step.
  std::optional<int64_t> micro_batch_size = {};
  std::optional<int64_t> processes = {};       ///< that train together; none: one alone
  std::optional<int64_t> gradient_slots = {};  ///< of a step's rows; none: one
};

/// Memory ran out after `step` steps: from now on the worker computes fewer rows at once and adds
/// up what comes of them, so that each step is on as many tokens as before.
struct MicroBatch {
  int64_t step = 0;
  std::string phase;  ///< "train", "evaluate"
  int64_t rows = 0;   ///< at once
  int64_t of = 0;     ///< that the config has for the phase
  std::string reason;
};

/// The worker lives: sent at least every second, not stored. One that repeats the one before it
/// does not count as a sign of life: it is the work that must go on, not a timer.
struct Progress {
  int64_t step = 0;
  std::string phase;    ///< "train", "evaluate", "save"; "room": a save waits for room on a disk
  double fraction = 0;  ///< of the phase, for all but train
};

/// Training metrics of the window of steps that ends with `step` (1-based count of done steps).
struct TrainMetrics {
  int64_t step = 0;
  int64_t tokens = 0;        ///< trained on since step 0
  double loss = 0;           ///< mean over the window's steps
  double learning_rate = 0;  ///< used by the last step
  double gradient_norm = 0;  ///< mean over the window, before clipping
  /// Of the window's training steps alone; none: no step was timed, as the first ones of a process.
  std::optional<double> tokens_per_second = {};
  double elapsed_seconds = 0;  ///< wall time since training began, earlier attempts included
};

template <class Visitor>
void fields(Visitor& visit, TrainMetrics& metrics) {
  visit.field("step", metrics.step);
  visit.field("tokens", metrics.tokens);
  visit.field("loss", metrics.loss);
  visit.field("learning_rate", metrics.learning_rate);
  visit.field("gradient_norm", metrics.gradient_norm);
  visit.optional("tokens_per_second", metrics.tokens_per_second);
  visit.field("elapsed_seconds", metrics.elapsed_seconds);
}

/// What the model answered for one row, on the way to the evaluation of `step`. Not stored: forge
/// turns answers into scores.
struct Answers {
  int64_t step = 0;
  AnswerKind kind = AnswerKind::likeliest;
  int64_t row = 0;
  std::vector<int32_t> ids;    ///< `likeliest`, `continuation`
  std::vector<double> values;  ///< `loss`, `log_probabilities` [places, ids of the task]
};

/// A figure of a task, e.g. an accuracy: a mean over `count` cases.
struct Score {
  double value = 0;
  int64_t count = 0;
};

struct Evaluation {
  int64_t step = 0;
  double loss = 0;  ///< token-weighted mean over the fixed held-out set
  int64_t tokens = 0;
  double seconds = 0;
  std::map<std::string, Score> scores = {};    ///< by name; forge adds them, no worker sends them
  std::optional<double> validation_loss = {};  ///< nats a token over validation_tokens
  std::vector<double> row_losses = {};         ///< nats a token in each row, after the last step
  std::vector<int64_t> row_tokens = {};        ///< scored in each of these rows
};

struct CheckpointSaved {
  int64_t step = 0;
  std::string path;  ///< relative to the run folder
  int64_t bytes = 0;
  double pause_seconds = 0;  ///< so long training stood still for it
};

/// The job ended as it should: all steps done, or stopped on request after saving.
struct Finished {
  bool completed = false;  ///< false: stopped on request
  int64_t step = 0;
  std::optional<double> eval_loss;
  std::optional<double> train_loss;         ///< mean of the last window; none: it had none yet
  std::optional<double> tokens_per_second;  ///< of training steps alone but the first few; the same
  double wall_seconds = 0;          ///< evaluation and saving included, earlier attempts too
  int64_t peak_memory_bytes = 0;    ///< held by tensors at the peak
  int64_t peak_resident_bytes = 0;  ///< of the process
  int64_t parameters = 0;
  bool shared_device = false;                ///< a GPU of which another process held memory
  std::optional<double> first_step_seconds;  ///< that the first step of this process took
  std::optional<double> compile_seconds;     ///< that a compiler took of it; none: nothing compiled
};

/// The job cannot be done. The worker exits after it with status 1 (2 where the request is wrong).
struct Failed {
  std::string message;
  std::string field;  ///< config key that is to blame, ""
  std::string hint;
  bool retry = false;                ///< the cause may be gone when the same is tried again later
  std::optional<int64_t> rank = {};  ///< of several processes the one that failed
  bool lost = false;  ///< another process is gone, which has the cause: this one knows none
  /// The numbers of training no longer make sense: the same run would come to that again.
  bool diverged = false;
};

/// One more token of each sample that goes on. Sample s of prompt p has the number p * samples + s.
struct Tokens {
  std::vector<int64_t> samples;
  std::vector<int32_t> ids;         ///< of each the token
  std::vector<FinishReason> ended;  ///< and whether it was its last
};

/// `bench` has warmed up and waits for windows to measure.
struct Ready {
  int64_t window_steps = 0;  ///< of each window, as asked for or chosen
  int64_t tokens_per_step = 0;
};

/// A window that was asked for, measured: training steps alone, the device waited for at both ends.
struct Window {
  int64_t steps = 0;
  double seconds = 0;
};

/// Asks a worker that is ready for a window: {"window": steps}, a line on its stdin.
struct WindowRequest {
  int64_t steps = 0;
};

/// Numbers the worker reports of its own accord: an answer of `bench`, `evaluate` or `generate`.
struct Result {
  nlohmann::json values = nlohmann::json::object();
};

using Event = std::variant<Hello,
                           Environment,
                           Started,
                           Progress,
                           TrainMetrics,
                           Evaluation,
                           CheckpointSaved,
                           Finished,
                           Failed,
                           Tokens,
                           Answers,
                           Ready,
                           Window,
                           Result,
                           Supports,
                           MicroBatch>;

/// One line without its newline. Non-finite numbers are written as the strings "nan", "inf",
/// "-inf".
std::string to_line(const Request& request);
std::string to_line(const WindowRequest& request);
std::string to_line(const Event& event);
/// The event as a JSON object, e.g. {"event":"train","step":10,…}.
nlohmann::json to_json(const Event& event);

/// JSON as one line; bytes that are no UTF-8 become U+FFFD.
std::string to_line(const nlohmann::json& json);
/// The JSON object of a line within the limits above; throws Error that quotes what it is instead.
nlohmann::json object_from_line(const std::string& line, size_t max_bytes = max_line_bytes);

/// Throw Error naming the missing, ill-typed or unknown part of the line. Extra keys are ignored,
/// so that a newer worker may say more. An event's texts are made fit for a terminal: control
/// characters but tabs and newlines become '?', and each is cut at max_text_bytes; the fraction of
/// a progress lies between 0 and 1.
Request request_from_line(const std::string& line);
WindowRequest window_request_from_line(const std::string& line);
Event event_from_line(const std::string& line);
Event event_from_json(const nlohmann::json& json);

/// The numbers of a train, evaluation or finished event, by the names under which forge stores and
/// compares them (core/results/metrics.h): a "loss" is train_loss or eval_loss. Scores are not
/// among them. Empty for other events.
std::vector<std::pair<std::string, double>> metrics_of(const Event& event);

/// "hello", "environment", "started", "progress", "train", "evaluation", "checkpoint", "finished",
/// "failed", "tokens", "answers", "ready", "window", "result", "supports", "micro_batch".
const char* name_of(const Event& event);

/// A stored `train` event without its JSON.
struct TrainLine {
  double time = 0;  ///< seconds since 1970
  int attempt = 0;
  TrainMetrics metrics;
};

/// The line as the supervisor writes it: a flat object with every field a plain number. Nothing for
/// any other line, also for a train event whose loss is no number: event_from_line reads those, and
/// these to the same values. Nearly all lines of a run are of this kind, and this is ten times as
/// fast.
std::optional<TrainLine> train_from_line(const std::string& line);

}  // namespace forge::worker
