#pragma once

#include <string>

#include "core/report/ablation.h"

/// Times say what a model costs only where nothing else used the machine.
namespace forge::report {

/// From this share of a machine's cores on, other processes are said to have kept it busy.
constexpr double busy_from = 0.05;

/// Whether others kept the machine busy while the run trained, or held memory of its GPU.
bool is_disturbed(const store::RunSummary& run);
bool is_disturbed(const Sample& sample);  ///< one of its runs

/// What disturbed the run, "other processes kept 21 % of the machine busy"; "" for nothing.
std::string disturbance_of(const store::RunSummary& run);

/// The same of the row's most disturbed run.
std::string disturbance_of(const Sample& sample);

}  // namespace forge::report
