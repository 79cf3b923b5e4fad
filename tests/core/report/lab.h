#pragma once

#include <string>
#include <vector>

#include "core/report/ablation.h"
#include "tests/support/run_folder_maker.h"
#include "tests/support/support.h"

namespace forge::tests {

/// A small table of three rows: llama (the baseline), canon_a and canon_b.
report::TableSpec small_table();

/// Published figures of two of its rows.
report::Published small_published();

/// Runs on disk, read through the store.
struct Lab {
  TemporaryFolder folder;
  std::filesystem::path runs = folder / "runs";

  /// A run of `config` created on `day` of November 2026, named <config>-<day>.
  static MadeRun run(const std::string& config, int day);
  std::vector<store::ConfiguredRun> read() const;
  report::Ablation table(const std::string& profile = "") const;
};

/// A table with a completed baseline, a failed run, a running one's lock, and one left out.
struct MixedLab : Lab {
  MixedLab();
};

}  // namespace forge::tests
