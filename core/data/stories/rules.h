#pragma once

#include <vector>

#include "core/data/stories/grammar.h"

namespace forge::data::stories {

const std::vector<VariableText>& variables();
const std::vector<RuleText>& common_rules();    ///< facts, openings, small pieces, endings
const std::vector<RuleText>& scene_rules();     ///< what happens around a story
const std::vector<RuleText>& keeping_plots();   ///< things lost, lent, promised and given
const std::vector<RuleText>& learning_plots();  ///< skills, school, messages, ways
const std::vector<RuleText>& doing_plots();     ///< making, growing, contests, animals

}  // namespace forge::data::stories
