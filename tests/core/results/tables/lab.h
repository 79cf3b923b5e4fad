#pragma once

#include <string>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/verdicts.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::tests {

/// A small table of three rows: llama (the baseline), canon_a and canon_b.
tables::TableSpec small_table();

/// Published results of two of its rows.
tables::Published small_published();

/// What a table leaves out, a line each: "canon_a: older than the run shown x1".
std::string excluded_text(const tables::Ablation& ablation);

/// Runs on disk, read through the store.
struct Lab {
  TemporaryFolder folder;
  std::filesystem::path runs = folder / "runs";

  /// A run of `config` created on `day` of November 2026, named <config>-<day>.
  static MadeRun run(const std::string& config, int day);
  std::vector<store::ConfiguredRun> read() const;
  tables::Ablation table(const std::string& profile = "") const;
};

/// As if two processes had trained the run.
void divide_among_two(const run::RunFolder& folder);

/// A table with a completed baseline, a failed run, a running one's lock, and one left out.
struct MixedLab : Lab {
  MixedLab();
};

}  // namespace forge::tests

namespace forge::tables {

/// The cells of a table that tests nothing but this metric.
std::vector<Cell> cells_of(const Ablation& ablation, const std::string& metric);

/// FORGE_TEST_SEED, or 1.
uint64_t simulation_seed();

/// How many tables a simulation makes: FORGE_TEST_TABLES, or as many.
int simulated_tables(int otherwise);

/// What the line above the table says of that entry of its setup, "" without it.
std::string setup_of(const Ablation& ablation, const std::string& name);

std::vector<JudgedClaim> judge_claims(const Ablation& ablation);

}  // namespace forge::tables
