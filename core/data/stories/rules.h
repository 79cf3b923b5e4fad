#pragma once

#include <vector>

#include "core/data/stories/grammar.h"

namespace forge::data::stories {

const std::vector<VariableText>& variables();   // rules_common.cpp
const std::vector<RuleText>& common_rules();    // rules_common.cpp: openings, scenes, endings
const std::vector<RuleText>& keeping_plots();   // things lost, lent, promised and given
const std::vector<RuleText>& learning_plots();  // skills, school, messages, ways
const std::vector<RuleText>& doing_plots();     // making, growing, contests, animals

}  // namespace forge::data::stories
