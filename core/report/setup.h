#pragma once

#include <vector>

#include "core/report/ablation.h"

namespace forge::report {

/// What the runs of a table have in common, each as a name and a value: profile, training,
/// evaluation, data, tokenizer, seed, device, parameters, versions, date of the newest run. Where
/// runs differ in one, all its values are given. Empty for no runs.
std::vector<SetupEntry> describe_setup(const std::vector<const store::ConfiguredRun*>& runs);

}  // namespace forge::report
