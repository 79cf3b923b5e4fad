#pragma once

#include <optional>

#include "core/data/tasks/capo.h"
#include "core/data/tasks/examination.h"
#include "core/data/token_file.h"

namespace forge::data::tasks {

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
