#include "core/results/store/run_condition.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/whole_id.h"
#include "core/config/tree.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"

namespace forge::store {
namespace {

using Json = nlohmann::json;

/// A number in any usual spelling, also ".5" and "1e-3"; null for what is none, such as "nan",
/// which would be neither less nor more than any value.
Json number_of(const std::string& text) {
  const Json exact = try_parse_json(text);
  if (exact.is_number()) return exact;  // whole numbers keep all their digits
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' || std::isnan(number) ? Json() : Json(number);
}

bool is_equality(const RunCondition& condition) {
  return condition.sign == "=" || condition.sign == "==" || condition.sign == "!=";
}

/// Of an equality: whether it holds where the two are equal, or not.
bool answer(const RunCondition& condition, bool are_equal) {
  return are_equal == (condition.sign != "!=");
}

bool is_time(const std::string& name) {
  const std::vector<std::string> times = {"created", "begun", "first_loss", "updated", "imported"};
  return std::find(times.begin(), times.end(), name) != times.end();
}

bool is_hash(const std::string& name) {
  return name == "data_fingerprint" || name == "tokenizer_fingerprint" ||
         name == "initial_weights_hash" || name == "program";
}

/// A time, or the beginning of one, as runs have it: "2026-11-23T13:05". "" for what is none.
std::string time_text(std::string text) {
  if (ends_with(text, "Z")) text.pop_back();
  if (text.size() > 10 && text[10] == ' ') text[10] = 'T';
  // The smallest and the largest of each place; a beginning ends behind a whole part.
  const std::string low = "0000-01-01T00:00:00", high = "9999-12-31T23:59:60";
  const std::vector<size_t> ends = {4, 7, 10, 13, 16, 19};
  const std::string whole = text.substr(0, low.size());
  const bool has_fraction = text.size() > low.size();
  if (std::find(ends.begin(), ends.end(), whole.size()) == ends.end()) return "";
  for (size_t i = 0; i < whole.size(); ++i) {
    const bool is_digit = whole[i] >= '0' && whole[i] <= '9';
    const bool wants_digit = low[i] >= '0' && low[i] <= '9';
    if (wants_digit ? !is_digit : whole[i] != low[i]) return "";
  }
  for (const size_t at : {size_t{5}, size_t{8}, size_t{11}, size_t{14}, size_t{17}}) {
    if (at >= whole.size()) break;
    const std::string part = whole.substr(at, 2);
    if (part < low.substr(at, 2) || part > high.substr(at, 2)) return "";
  }
  const size_t day = 10;
  if (whole.size() >= day && !time_from(whole.substr(0, day))) return "";  // 30 February
  const std::string fraction = has_fraction ? text.substr(low.size()) : "";
  const bool is_fraction =
      fraction.empty() || (fraction[0] == '.' && fraction.size() > 1 &&
                           fraction.find_first_not_of("0123456789", 1) == std::string::npos);
  return is_fraction ? text : "";
}

/// The elements of a list as it is typed or shown: "[0.9,0.95]", "0.9, 0.95". None where it is no
/// list: one element has to have its brackets.
std::optional<Json> list_of(const std::string& text) {
  const Json exact = try_parse_json(text);
  if (exact.is_array()) return exact;
  const bool has_brackets = text.size() > 1 && text.front() == '[' && text.back() == ']';
  if (!has_brackets && text.find(',') == std::string::npos) return std::nullopt;
  Json list = Json::array();
  const std::string inner = has_brackets ? text.substr(1, text.size() - 2) : text;
  for (const std::string& part : split(inner, ',')) {
    const std::string element(trim(part));
    const Json number = number_of(element);
    list.push_back(number.is_null() ? Json(element) : number);
  }
  return list;
}

/// Negative, 0 or positive; none for a column without a value.
std::optional<int> compare(const Json& column, const RunCondition& condition) {
  const std::string& value = condition.value;
  if (column.is_null() || (column.is_number() && std::isnan(column.get<double>())))
    return std::nullopt;
  if (column.is_boolean()) return column.dump().compare(value);
  const Json other = number_of(value);
  if (!column.is_string()) return column < other ? -1 : other < column ? 1 : 0;
  const auto& text = column.get_ref<const std::string&>();
  if (!is_time(condition.column)) return text.compare(value);
  const std::string time = time_text(value);
  return text.compare(0, time.size(), time);  // so that a day is all of the day
}

/// Equality of texts that are known by less than the whole; none for any other column.
std::optional<bool> are_equal(const RunCondition& condition, const std::string& text) {
  const std::string& value = condition.value;
  if (condition.column == "id") return names_run(value, text);
  if (condition.column == "config") return ::fnmatch(value.c_str(), text.c_str(), 0) == 0;
  constexpr size_t shown_digits = 8;
  if (is_hash(condition.column) && value.size() >= shown_digits) return starts_with(text, value);
  return std::nullopt;
}

}  // namespace

RunCondition parse_condition(const std::string& text) {
  const size_t at = text.find_first_of("=<>!");
  if (at == std::string::npos || at == 0) {
    throw Error("'" + text + "' is no condition",
                "a condition compares a column: seed=42, eval_loss<0.52, status!=failed",
                ExitCode::usage);
  }
  const size_t end = at + 1 < text.size() && text[at + 1] == '=' ? at + 2 : at + 1;
  RunCondition condition{text.substr(0, at), text.substr(at, end - at), text.substr(end)};
  if (condition.sign == "!")
    throw Error("'" + text + "' is no condition", "'not equal' is !=", ExitCode::usage);
  if (condition.column == "tag") condition.column = "tags";
  return condition;
}

void require_value(const RunCondition& condition, const Json& column) {
  const std::string& name = condition.column;
  const std::string& value = condition.value;
  const auto refuse = [&](const std::string& wanted, const std::string& hint = "") {
    throw Error("'" + name + "' is " + wanted + ", not '" + value + "'", hint, ExitCode::usage);
  };
  const bool has_order = !column.is_array() && (!column.is_string() || is_time(name));
  if (!has_order && !is_equality(condition))
    throw Error("'" + name + "' can only be compared by = and !=", ExitCode::usage);
  const bool may_be_absent = !column.is_string() || is_time(name);
  if (value == "null" && is_equality(condition) && may_be_absent) return;
  if (column.is_array() && name != "tags" && !list_of(value)) refuse("a list such as [1,2]");
  if (column.is_boolean() && value != "true" && value != "false") refuse("true or false");
  if (column.is_number() && number_of(value).is_null()) refuse("a number");
  if (column.is_number()) config::require_plain_number(value);
  if (!column.is_string()) return;
  if (is_time(name) && time_text(value).empty())
    refuse("a time in UTC such as 2026-11-23 or 2026-11-23T13:05:00Z");
  const std::vector<std::string>& states = run::names_of(run::RunState());
  if (name == "status" && std::find(states.begin(), states.end(), value) == states.end())
    refuse("one of " + join(states, ", "), did_you_mean(value, states));
}

bool holds(const RunCondition& condition, const Json& column) {
  const bool is_never = is_time(condition.column) && column == "";
  const bool asks_for_none = condition.value == "null" && is_equality(condition);
  const bool has_no_tags = condition.column == "tags" && column.empty();
  const bool is_empty = column.is_null() || column == "" || has_no_tags;
  if (asks_for_none && column != condition.value) return answer(condition, is_empty);
  require_value(condition, column);
  if (is_never) return false;
  if (column.is_array() && condition.column == "tags")
    return answer(condition,
                  std::find(column.begin(), column.end(), condition.value) != column.end());
  if (column.is_array()) return answer(condition, column == *list_of(condition.value));
  if (column.is_string() && is_equality(condition))
    if (const auto equal = are_equal(condition, column.get<std::string>()))
      return answer(condition, *equal);
  const std::optional<int> order = compare(column, condition);
  if (!order) return false;
  const std::string& sign = condition.sign;
  if (is_equality(condition)) return answer(condition, *order == 0);
  if (sign == "<") return *order < 0;
  if (sign == "<=") return *order <= 0;
  if (sign == ">") return *order > 0;
  return *order >= 0;
}

bool names_run(const std::string& pattern, const std::string& name) {
  const bool is_beginning = starts_with(name, pattern) && !is_whole_id(pattern);
  return is_beginning || name == pattern || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace forge::store
