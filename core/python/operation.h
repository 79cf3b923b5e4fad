#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/python/value.h"

namespace forge::python {

/// A failed operation on values, which do not know where in a template they are used. The
/// evaluator turns it into an Error with the place.
struct OperationError : std::runtime_error {
  explicit OperationError(const std::string& message, std::string hint_text = "")
      : std::runtime_error(message), hint(std::move(hint_text)) {}
  std::string hint;
};

/// An undefined value was used.
struct UndefinedError : OperationError {
  explicit UndefinedError(Value value)
      : OperationError(value.as_undefined().message), undefined(std::move(value)) {}
  Value undefined;
};

/// Throws UndefinedError when `value` is undefined.
inline const Value& require_defined(const Value& value) {
  if (value.is_undefined()) throw UndefinedError(value);
  return value;
}

// What a render may do in all, so that a hostile template ends in an error within seconds and
// before it fills the memory. A unit is about a nanosecond; a real config takes less than a
// thousandth of the limit.
constexpr int64_t max_work = 4'000'000'000;
constexpr int64_t cost_of_step = 100;    ///< a statement or expression
constexpr int64_t cost_of_call = 2'000;  ///< of a macro, a block or an included template
// Of what is made, four units a byte, so that all of it together stays below a gigabyte.
constexpr int64_t cost_of_value = 400;  ///< a text or a container, empty
constexpr int64_t cost_of_byte = 4;     ///< of a text
constexpr int64_t cost_of_item = 128;   ///< of a list or dict

/// Hint when the limit is exceeded.
constexpr const char* work_hint = "look for loops within loops and texts that grow";

namespace detail {
inline thread_local int64_t remaining_work = std::numeric_limits<int64_t>::max();
[[noreturn]] void refuse_work();
}  // namespace detail

/// Counts the work of this thread while it lives. A budget within another is at most what that one
/// has left.
class WorkBudget {
 public:
  explicit WorkBudget(int64_t limit = max_work)
      : outer_(detail::remaining_work), limit_(limit < outer_ ? limit : outer_) {
    detail::remaining_work = limit_;
  }
  ~WorkBudget() { detail::remaining_work = outer_ - (limit_ - detail::remaining_work); }
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

 private:
  int64_t outer_, limit_;
};

/// Throws OperationError when a render has done too much.
inline void charge(int64_t units) {
  if ((detail::remaining_work -= units) < 0) detail::refuse_work();
}
/// For a text or container that is made.
inline void charge_text(size_t bytes) {
  charge(cost_of_value + static_cast<int64_t>(bytes) * cost_of_byte);
}
inline void charge_items(size_t items) {
  charge(cost_of_value + static_cast<int64_t>(items) * cost_of_item);
}
/// For a walk over `steps` bytes or items.
inline void charge_walk(size_t steps) { charge(static_cast<int64_t>(steps)); }

/// For a search of one text in another, which compares at every position in the worst case.
inline void charge_search(size_t bytes, size_t wanted) {
  charge(static_cast<int64_t>(bytes) + static_cast<int64_t>(bytes / 4 * (wanted / 4)));
}

}  // namespace forge::python
