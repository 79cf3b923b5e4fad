#pragma once

#include <array>
#include <string>
#include <vector>

namespace forge::data::tasks {

/// What Capo's people are made of: made-up names and places, as many as in Part 3.3. Entries of a
/// list are distinct and hold no full stop.
struct CapoLists {
  std::vector<std::string> first_names;   ///< 400
  std::vector<std::string> middle_names;  ///< 400
  std::vector<std::string> last_names;    ///< 1000
  std::vector<std::string> cities;        ///< 200, "Mapleton, OH"
  std::vector<std::string> universities;  ///< 300
  std::vector<std::string> fields;        ///< 100
  std::vector<std::string> employers;     ///< 263
  std::vector<int> headquarters;          ///< per employer: its city
};

const CapoLists& capo_lists();

const std::array<const char*, 12>& month_names();

constexpr int capo_days = 28;
constexpr int capo_years = 200;
constexpr int capo_first_year = 1900;  ///< the paper does not say which

/// A sentence about one fact: `before` subject `between` value `after`.
struct CapoTemplate {
  std::string before;
  std::string between;
  std::string after;
};

/// Sentences of the six facts that one tells, in the paper's order and numbers: birth date 46,
/// birth city 49, university 49, field 52, working city 47, employer 48.
const std::array<std::vector<CapoTemplate>, 6>& capo_templates();

}  // namespace forge::data::tasks
