#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/data/common.h"
#include "core/data/tasks/task.h"

namespace forge::data::tasks {

/// A worker's output for one row.
struct RowAnswer {
  AnswerKind kind = AnswerKind::likeliest;
  int64_t row = 0;
  std::vector<int32_t> ids;    ///< likeliest, continuation
  std::vector<double> values;  ///< loss, log_probabilities [positions, vocab_size]
};

/// Computes a task's metrics from a worker's outputs for the rows of an evaluation.
class Scorer {
 public:
  virtual ~Scorer() = default;
  /// The outputs that a worker returns for each row, beside the loss.
  virtual std::set<AnswerKind> requested() const = 0;
  /// Rows come in any order, each once. Throws Error for an output that was not requested or has a
  /// wrong length.
  void add(const RowAnswer& answer);
  /// The metrics of all rows since the last call.
  virtual Scores finish() = 0;

 protected:
  explicit Scorer(int64_t rows) : rows_(rows) {}
  /// Of a requested kind and an existing row.
  virtual void measure(const RowAnswer& answer) = 0;

  int64_t rows_;
};

/// What a scorer is of.
struct ScorerOptions {
  int seq_len = 0;
  int64_t rows = 0;
  bool padded = false;              ///< capo: a row is a document of the token file
  std::filesystem::path tokens;     ///< capo: the token file of the rows
  std::filesystem::path tokenizer;  ///< capo: its tokenizer.json
  int64_t parameters = 0;           ///< capo: of the model
};

/// For the evaluation rows of a spec (task_spec.h). Costs nothing before the first output.
std::unique_ptr<Scorer> make_scorer(const nlohmann::json& spec, const ScorerOptions& options);

}  // namespace forge::data::tasks
