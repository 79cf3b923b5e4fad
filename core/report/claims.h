#pragma once

#include <string>
#include <vector>

#include "core/report/ablation.h"

namespace forge::report {

/// What the runs of a table say of one of its claims.
struct Verdict {
  enum class Kind {
    not_decidable,  ///< with these runs: some are missing, or they leave it open
    holds,
    fails,
  };
  Kind kind = Kind::not_decidable;
  std::string claim;         ///< "Canon-B has a lower eval loss than Llama"
  std::string reason;        ///< the measured value with its interval, or what is missing
  bool is_measured = false;  ///< it is the value
};

/// "not decidable", "holds", "fails"
const char* name_of(Verdict::Kind kind);

/// A verdict on each claim of the table, in its order. One about another profile than the one shown
/// is not decidable; what the runs shown say of it is told. It takes several seeds: against a
/// number the 95 % interval of the mean must lie on one side of it, against another row the
/// difference must stand (paired test where the seeds match, else Welch's, p at most 0.05; each
/// claim is a question of its own, asked before the runs were made, so nothing is adjusted). One
/// seed decides nothing; what it speaks for is said, of an accuracy or validity with the sampling
/// error of its cases. Where rows show the best of several runs, all of those must be there.
std::vector<Verdict> judge_claims(const Ablation& ablation);

/// "not decidable: Canon-B has a lower eval loss than Llama (no run of canon_b)"
std::string verdict_line(const Verdict& verdict);

}  // namespace forge::report
