#pragma once

#include <utility>

#include "core/base/error.h"
#include "core/templating/evaluator.h"
#include "core/templating/operation_error.h"
#include "core/templating/work.h"

namespace forge::templating {

/// One level deeper in the walk; refuses to go so deep that the stack could end.
class Evaluator::Level {
 public:
  Level(Evaluator& evaluator, Place place) : evaluator_(evaluator) {
    constexpr int max_depth = 1500;
    if (evaluator_.depth_ >= max_depth) {
      evaluator_.fail("templates, macros or blocks call each other too deeply", place);
    }
    if (detail::remaining_work < work_of_step) {
      evaluator_.fail("this template does too much work", place, work_hint);
    }
    charge(work_of_step);
    ++evaluator_.depth_;
  }
  ~Level() { --evaluator_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Evaluator& evaluator_;
};

/// Runs `action`; what it throws without a place becomes an Error at `place`.
template <typename Action>
auto Evaluator::guarded(const Frame& frame, Place place, Action action) {
  try {
    return action();
  } catch (const UndefinedError& error) {
    fail_undefined(error.undefined, frame, place);
  } catch (const OperationError& error) {
    fail(error.what(), place, error.hint);
  }
}

}  // namespace forge::templating
