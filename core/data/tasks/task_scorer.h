#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/data/rows/token_file.h"
#include "core/data/tasks/capo.h"
#include "core/data/tasks/task.h"

namespace forge::data::tasks {

/// Outputs that a worker returns for each row of an evaluation, beside the loss.
struct RequestedOutputs {
  bool argmax = false;             ///< the most probable id at each scored target
  bool losses = false;             ///< negative log likelihood of each of them, in nats
  bool log_probabilities = false;  ///< of every id, from the row's beginning to behind its first
                                   ///< text: [positions, vocab_size]
  bool continuation = false;       ///< what the model writes behind the prompt of the row's first
                                   ///< text
};

/// Computes a task's metrics from a worker's outputs for the rows of an evaluation. Rows come in
/// any order, each once. Throws Error for an output that was not requested or has a wrong length.
class Scorer {
 public:
  virtual ~Scorer() = default;
  virtual RequestedOutputs requested() const = 0;

  virtual void add_argmax(int64_t row, const std::vector<int32_t>& ids);
  virtual void add_losses(int64_t row, const std::vector<double>& losses);
  virtual void add_log_probabilities(int64_t row, const std::vector<double>& values);
  virtual void add_continuation(int64_t row, const std::vector<int32_t>& ids);

  /// The metrics of all rows since the last call.
  virtual Scores finish() = 0;
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

/// How much a model knows of Capo's people: over the paragraphs that lie whole in a row, name_loss
/// and value_loss in nats and bits_per_parameter.
class CapoScorer : public Scorer {
 public:
  CapoScorer(Capo capo, const ScorerOptions& options);

  RequestedOutputs requested() const override;
  void add_losses(int64_t row, const std::vector<double>& losses) override;
  Scores finish() override;

 private:
  void open();
  TokenSpan span_of(int64_t row) const;
  void measure(int64_t document, const std::vector<double>& losses, int64_t first_target);

  Capo capo_;
  ScorerOptions options_;
  std::optional<TokenFile> tokens_;  ///< once the first answer comes
  std::optional<Tokenizer> tokenizer_;
  std::vector<int64_t> beginnings_;  ///< of all documents, in tokens
  Scores scores_;
};

}  // namespace forge::data::tasks
