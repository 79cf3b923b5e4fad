#include "tests/core/results/tables/lab.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "core/base/files.h"

namespace forge::tests {

using tables::ColumnKind;

tables::TableSpec small_table() {
  tables::TableSpec table;
  table.name = "small";
  table.title = "Canon positions";
  table.baseline = "llama";
  table.rows = {{"llama", "Llama 4M", "", "reference"},
                {"canon_a", "Canon-A", "A", "before attention"},
                {"canon_b", "Canon-B", "B", "on queries, keys and values"}};
  table.columns = {{ColumnKind::model, "Model"},
                   {ColumnKind::positions, "Positions"},
                   {ColumnKind::metric, "Eval Loss", "eval_loss"},
                   {ColumnKind::published, "Published Eval Loss", "eval_loss"},
                   {ColumnKind::metric, "Tok/s", "tokens_per_second"},
                   {ColumnKind::metric, "Memory", "peak_memory_bytes"},
                   {ColumnKind::overhead, "Overhead vs Llama"}};
  table.must_be_equal = {"profile", "data", "tokenizer", "evaluation", "device", "train"};
  return table;
}

std::string excluded_text(const tables::Ablation& ablation) {
  std::string text;
  for (const tables::ExcludedRuns& entry : ablation.excluded) {
    text += entry.config + ": " + entry.reason + " x" + std::to_string(entry.runs.size()) + "\n";
  }
  return text;
}

tables::Published small_published() {
  tables::Published published;
  published.source = "A paper";
  published.url = "https://example.org/paper";
  published.setup = "one seed";
  published.results = {{"llama", 1.3011, 291000.0, 1.5}, {"canon_a", 1.2643, 316000.0, 1.56}};
  return published;
}

MadeRun Lab::run(const std::string& config, int day) {
  char created[32];
  std::snprintf(created, sizeof created, "2026-11-%02dT10:00:00.000Z", day);
  MadeRun made;
  made.config = config;
  made.created = created;
  made.id = config + "-" + std::to_string(day);
  return made;
}

std::vector<store::ConfiguredRun> Lab::read() const {
  store::ResultStore store(folder / "forge.sqlite");
  store.sync(runs);
  return store.configured_runs();
}

tables::Ablation Lab::table(const std::string& profile) const {
  return tables::build_ablation(small_table(), read(), {profile, std::nullopt});
}

void divide_among_two(const run::RunFolder& folder) {
  std::string log = read_file(folder.events_file());
  const std::string one = "\"processes\":null";
  const size_t at = log.find(one);
  if (at == std::string::npos) throw std::logic_error("the run's log names no processes");
  write_file_atomic(folder.events_file(), log.replace(at, one.size(), "\"processes\":2"));
}

MixedLab::MixedLab() {
  make_completed_run(runs, run("llama", 20), {3.25, 4300, int64_t{3} << 29});
  make_failed_run(runs, run("canon_a", 20), 20, "worker killed by SIGKILL");
  MadeRun full = run("canon_b", 19);
  full.experiment.profile = "full";
  full.experiment.train.max_steps = 6625;
  make_stopped_run(runs, full, 10);
}

}  // namespace forge::tests

namespace forge::tables {

std::vector<Cell> cells_of(const Ablation& ablation, const std::string& metric) {
  Ablation alone = ablation;
  alone.table.columns = {{ColumnKind::metric, metric, metric}};
  alone.table.primary = metric;
  alone.table.claims.clear();
  return verdicts_of(alone).cells.at(metric);
}

uint64_t simulation_seed() {
  const char* chosen = std::getenv("FORGE_TEST_SEED");
  return chosen && *chosen ? std::strtoull(chosen, nullptr, 10) : 1;
}

int simulated_tables(int otherwise) {
  const char* chosen = std::getenv("FORGE_TEST_TABLES");
  return chosen && *chosen ? std::atoi(chosen) : otherwise;
}

std::string setup_of(const Ablation& ablation, const std::string& name) {
  for (const SetupEntry& entry : ablation.setup)
    if (entry.name == name) return entry.short_text;
  return "";
}

std::vector<JudgedClaim> judge_claims(const Ablation& ablation) {
  return verdicts_of(ablation).claims;
}

}  // namespace forge::tables
