#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/data/common.h"
#include "core/data/tasks/grammar.h"

/// The synthetic pretraining tasks of "Physics of Language Models: Part 4.1, Architecture Design
/// and the Magic of Canon Layers" (Allen-Zhu, 2025; section 2 and appendices A to C), endless and
/// fresh: instance i of a stream is a pure function of (config, seed, split, i). Capo, which is
/// text and needs a tokenizer, is in capo.h; how instances become rows for training is in
/// task_rows.h.
namespace forge::data::tasks {

/// To be raised when any instance of any task changes, for runs on them are then others.
constexpr int tasks_version = 1;

/// Where the paper and its released code differ, which one is followed.
enum class Variant { paper, code };

/// A part of an instance that answers a question.
struct Answer {
  int32_t loss_begin = 0;  ///< first target of the answer: its marker where that carries loss
  int32_t begin = 0;       ///< first and one past the last token that accuracy is measured over
  int32_t end = 0;
  int32_t group = 0;  ///< Depo: hops, Brevo: depth, Mano: operators
};

/// One text of a task in dense ids.
struct Instance {
  std::vector<int32_t> tokens;
  std::vector<uint8_t>
      scored;  ///< per token: 1 where it carries loss (the token before predicts it)
  std::vector<Answer> answers;  ///< in order, disjoint

  void clear();
  void add(int32_t token, bool carries_loss = false);
};

/// What is wrong with a text, and the token at which it shows.
struct Fault {
  int32_t position = 0;
  std::string message;
};

/// Sums of metrics by name ("answer_accuracy", "answer_accuracy.hop_8"), from which means follow.
class Scores {
 public:
  struct Sum {
    double total = 0;
    int64_t count = 0;
    double mean() const { return count > 0 ? total / static_cast<double>(count) : 0; }
  };
  void add(const std::string& name, double total, int64_t count = 1);
  const std::map<std::string, Sum>& sums() const { return sums_; }
  /// Mean of a metric; nothing where none was measured.
  std::optional<double> mean(const std::string& name) const;

 private:
  std::map<std::string, Sum> sums_;
};

/// How a model is evaluated.
enum class EvalMode {
  teacher_forced,  ///< the whole text is given; the most probable id at each position counts
  greedy,          ///< a prompt is given; the most probable id is appended until `stop`
  sampled,         ///< the same, sampled at temperature 1
};

/// The beginning of a text that the model continues.
struct Prompt {
  std::vector<int32_t> tokens;
  int32_t stop = -1;
  int32_t max_new_tokens = 0;  ///< the stop token included; enough for every right answer
};

/// A task. Immutable: any number of threads may share one. Ids are 0 … vocab_size()-1; each class
/// says which token is which, in the order of the ids that the authors' code uses.
class Task {
 public:
  virtual ~Task() = default;

  virtual std::string name() const = 0;
  virtual int32_t vocab_size() const = 0;
  /// How an id is printed: "31", "<hop 3>", "<bos>". Throws Error for an id outside.
  virtual std::string token_name(int32_t id) const = 0;
  /// Fewest tokens of an instance; bounds how many begin in a row.
  virtual int32_t min_length() const = 0;

  /// Puts instance `index` (< 2^44) in place of what `instance` held. Training instances have
  /// random sizes; those for evaluation the largest, as the paper measures.
  virtual void generate(uint64_t seed, Split split, uint64_t index, Instance& instance) const = 0;

  virtual EvalMode eval_mode() const { return EvalMode::teacher_forced; }
  /// Where eval_mode() is not teacher_forced.
  virtual Prompt prompt(const Instance& instance) const;
  /// Adds the paper's metrics. `predicted` holds, teacher forced, the id predicted for each token
  /// of the instance (-1: none); else what the model wrote behind the prompt.
  virtual void score(const Instance& instance,
                     const std::vector<int32_t>& predicted,
                     Scores& scores) const = 0;
};

/// Reasoning depth: k-hop questions about a random cycle of names. See tasks.h.
struct DepoConfig {
  int max_nodes = 375;      ///< N
  int max_hops = 8;         ///< K
  int letters = 50;         ///< V: names are letters 1 … V, the last one of them V+1 … 2V
  int min_name_length = 1;  ///< in tokens
  int max_name_length = 2;
  int max_queries = 10;
};

/// Reasoning breadth: all that a vertex of a random DAG depends on, in order. See tasks.h.
struct BrevoConfig {
  int max_nodes = 110;  ///< N
  bool names = false;   ///< vertices have names (Brevo2) and not numbers (Brevo1)
  int letters = 4;      ///< V of the names
  int min_name_length = 2;
  int max_name_length = 4;
  Variant variant = Variant::paper;
};

/// Knowledge manipulation: arithmetic modulo 23 in prefix notation. See tasks.h.
struct ManoConfig {
  int max_operators = 16;  ///< L
  Variant variant = Variant::paper;
  bool synonyms = true;  ///< code's variant: two tokens for each operator and marker
};

/// Hierarchical structure: sentences of a context-free grammar. See lano.h.
struct LanoConfig {
  Grammar grammar;
};

/// Token copy: a permutation, and once more. See tasks.h.
struct CopyConfig {
  int length = 500;       ///< N
  int scored_tokens = 0;  ///< number of copied tokens that are scored; 0: all
};

/// The two variants of the paper. Depo2 has V = 4 in the paper and 3 in its code.
DepoConfig depo1(int max_nodes, int max_hops);
DepoConfig depo2(int max_nodes, int max_hops, Variant variant = Variant::paper);
BrevoConfig brevo1(int max_nodes, Variant variant = Variant::paper);
BrevoConfig brevo2(int max_nodes, Variant variant = Variant::paper);

using TaskConfig = std::variant<DepoConfig, BrevoConfig, ManoConfig, LanoConfig, CopyConfig>;

/// Throws Error naming the key of a bad value and what would be right.
std::unique_ptr<const Task> make_task(const TaskConfig& config);

/// The tokens' names with spaces between them.
std::string print(const Task& task, const std::vector<int32_t>& tokens);

}  // namespace forge::data::tasks
