#pragma once

#include <string>

#include "core/results/store/run_summary.h"

/// When a run was what. Its `created` says when it was planned, which may be long before: a run
/// waits in a queue, behind others or for good, until somebody resumes it, and one of another
/// machine may be imported at any time. All of these choose by what is known by then.
namespace forge::tables {

/// When the attempt began that told its first loss; of a run that told none, its last attempt;
/// where it never began, when it was planned. UTC.
const std::string& begun_at(const store::RunSummary& run);

/// When it came into its place among the runs that are known here: when it was begun, or later,
/// when it was imported. UTC. Runs are in order by begun_at: who imports chooses the order of that.
const std::string& made_at(const store::RunSummary& run);

/// When it first told something: with its first loss, also if it was stopped then and went on
/// later; where none is recorded, at its end. UTC.
const std::string& told_at(const store::RunSummary& run);

}  // namespace forge::tables
