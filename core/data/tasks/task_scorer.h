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

/// What a worker is asked about each row of an evaluation, beside the loss.
struct Wanted {
  bool likeliest = false;          ///< the likeliest id at each target that is scored
  bool losses = false;             ///< negative log likelihood of each of them, in nats
  bool log_probabilities = false;  ///< of every id, from the row's beginning to behind its first
                                   ///< text: [positions, vocab_size]
  bool continuation = false;       ///< what the model writes behind the prompt of the row's first
                                   ///< text
};

/// Turns a worker's answers about the rows of an evaluation into a task's figures. Rows come in any
/// order, each once. Taking an answer throws Error where it is not wanted or its length cannot be.
class Examination {
 public:
  virtual ~Examination() = default;
  virtual Wanted wanted() const = 0;

  virtual void take_likeliest(int64_t row, const std::vector<int32_t>& ids);
  virtual void take_losses(int64_t row, const std::vector<double>& losses);
  virtual void take_log_probabilities(int64_t row, const std::vector<double>& values);
  virtual void take_continuation(int64_t row, const std::vector<int32_t>& ids);

  /// The figures of all answers since the last call.
  virtual Scores finish() = 0;
};

/// What an examination is of.
struct ExaminationOptions {
  int seq_len = 0;
  int64_t rows = 0;
  bool padded = false;              ///< capo: a row is a document of the token file
  std::filesystem::path tokens;     ///< capo: the token file of the rows
  std::filesystem::path tokenizer;  ///< capo: its tokenizer.json
  int64_t parameters = 0;           ///< capo: of the model
};

/// Of the rows of the spec (spec.h) for evaluation. Costs nothing before the first answer.
std::unique_ptr<Examination> examination_of(const nlohmann::json& spec,
                                            const ExaminationOptions& options);

/// How much a model knows of Capo's people: over the paragraphs that lie whole in a row, name_loss
/// and value_loss in nats and bits_per_parameter.
class CapoExamination : public Examination {
 public:
  CapoExamination(Capo capo, const ExaminationOptions& options);

  Wanted wanted() const override;
  void take_losses(int64_t row, const std::vector<double>& losses) override;
  Scores finish() override;

 private:
  void open();
  TokenSpan span_of(int64_t row) const;
  void measure(int64_t document, const std::vector<double>& losses, int64_t first_target);

  Capo capo_;
  ExaminationOptions options_;
  std::optional<TokenFile> tokens_;  ///< once the first answer comes
  std::optional<Tokenizer> tokenizer_;
  std::vector<int64_t> beginnings_;  ///< of all documents, in tokens
  Scores scores_;
};

}  // namespace forge::data::tasks
