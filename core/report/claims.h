#pragma once

#include <string>
#include <vector>

#include "core/report/ablation.h"

namespace forge::report {

/// What the runs of a table say of one of its claims.
struct Verdict {
  enum class Kind {
    not_decidable,  ///< runs are missing, or are of another profile
    not_decided,    ///< the evaluation had too few cases to tell
    one_seed_for,   ///< one run of each says so, which chance may have done
    one_seed_against,
  };
  Kind kind = Kind::not_decidable;
  std::string claim;   ///< "Canon-B has a lower eval loss than Llama"
  std::string reason;  ///< what is missing, or the difference
};

/// "not decidable", "not decided", "one seed for it", "one seed against it"
const char* name_of(Verdict::Kind kind);

/// A verdict on each claim of the table, in its order. A row shows one run, so no claim is ever
/// called true: that takes several seeds. Of an accuracy or validity, which is a share of so many
/// cases, its interval of 95 % must lie on one side of the number, and the intervals of two rows
/// apart. Where rows show the best of several runs, all of those must be there.
std::vector<Verdict> judge_claims(const Ablation& ablation);

/// "not decidable: Canon-B has a lower eval loss than Llama (no run of canon_b)"
std::string verdict_line(const Verdict& verdict);

}  // namespace forge::report
