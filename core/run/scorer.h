#pragma once

#include <filesystem>
#include <memory>

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

  /// Throws Error for an answer that was not asked for or cannot be one.
  void add(const worker::Answers& answers);

  /// The scores of the answers since the last call.
  std::map<std::string, worker::Score> finish();

 private:
  std::unique_ptr<data::tasks::Scorer> scorer_;  ///< none: nothing is asked
};

}  // namespace forge::run
