#pragma once

#include <string>

#include <nlohmann/json.hpp>

/// Conditions that choose runs: --where. 'forge runs rm' removes what they choose, so that a value
/// which would be compared as text, and choose by chance, is refused.
namespace forge::store {

struct RunCondition {
  std::string column, sign, value;
};

/// Of "seed=42", "eval_loss<0.52", "status!=failed". Throws Error for what is none.
RunCondition parse_condition(const std::string& text);

/// Throws Error for a value or a sign that the column cannot be compared with. `column`: a value of
/// its type; null says nothing.
void require_value(const RunCondition& condition, const nlohmann::json& column);

/// Whether it holds of that value of the column:
/// - numbers are compared as such, text is equal or not;
/// - times (such as created) as far as they are written: "<=2026-11" is to the end of that month;
/// - of tags any may be equal; any other list is compared as a whole: "[0.9,0.95]";
/// - an id by its beginning or a pattern, a config by a pattern, as commands take them;
/// - hashes by a beginning of at least eight digits, as tables show them;
/// - "=null" holds of a run without the value, with an empty text or without tags, "!=null" of one
///   with it. No other condition holds of a run without the value.
/// Throws Error as require_value does.
bool holds(const RunCondition& condition, const nlohmann::json& column);

/// Whether the pattern is the name, matches it or, where it is no whole id of a run, begins it.
bool names_run(const std::string& pattern, const std::string& name);

}  // namespace forge::store
