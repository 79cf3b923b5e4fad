#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/config/experiment.h"
#include "core/data/tasks/task_scorer.h"
#include "core/worker/messages.h"

namespace forge::run {

/// Adds to a request what the task of its evaluation rows asks about them, where they are a task's.
void request_answers(const config::Experiment& experiment, worker::Request& request);

/// Makes scores of the answers that a worker gives to a request.
class Scorer {
 public:
  /// `tokenizer`: of the run, for a task of text.
  Scorer(const worker::Request& request, const std::filesystem::path& tokenizer);

  /// Throws Error for an answer that was not asked for or cannot be one, is of another step than
  /// those before it, or says something else of its row than was said. What is said again counts
  /// once.
  void add(const worker::Answers& answers);

  /// The scores of the answers since the last call, of an evaluation after that step; none where
  /// nothing was answered. Throws Error where rows are missing, or of another step.
  std::map<std::string, worker::Score> finish(std::optional<int64_t> step = {});

  /// Forgets answers that no evaluation followed.
  void forget();

 private:
  std::unique_ptr<data::tasks::Scorer> scorer_;  ///< none: nothing is asked
  std::map<worker::AnswerKind, int64_t> rows_;   ///< that are to be answered
  /// What was answered since the last evaluation, by kind and row: hashes.
  std::map<std::pair<worker::AnswerKind, int64_t>, std::string> answered_;
  int64_t step_ = 0;  ///< of these
};

}  // namespace forge::run
