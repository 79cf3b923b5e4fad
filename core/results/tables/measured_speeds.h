#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/results/benchmark/benchmark.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/table_spec.h"

/// Speeds of a table's rows from `forge bench` instead of from the rows' runs.
namespace forge::tables {

/// What decides how fast a config trains, as texts: dotted keys of the config, and "device",
/// "processes" and "program". What is not known is not there.
using SpeedSettings = std::map<std::string, std::string>;

/// Of a resolved config, which says nothing of the device and the program.
SpeedSettings speed_settings_of(const nlohmann::json& config);
/// As the run was trained, in all its attempts.
SpeedSettings speed_settings_of(const store::ConfiguredRun& run);

/// In what a measurement differs from what a row is trained with, "measured with optimizer.type sgd
/// (the runs: adamw)", or "" if in nothing that decides the speed. What best_of varies may differ
/// where it is no key of `train`. `whose` settings are these: "the runs", "the config".
std::string why_of_other_training(const benchmark::Record& record,
                                  const SpeedSettings& own,
                                  const std::string& whose,
                                  const TableSpec& table);

/// A row that a measurement is looked for.
struct SpeedRow {
  std::string config;
  /// Why a measurement of that config is not one of the row, "" if it is.
  std::function<std::string(const benchmark::Record&)> why_not_its_own;
};

/// The measurement that a row shows.
struct MeasuredSpeed {
  benchmark::Record record;
  /// Why it says nothing beside others: "measured in another call, on 2026-11-20"; "" if it does.
  std::string not_comparable_because;
  /// When calls before that one were made which measured the row as it is trained. UTC.
  std::vector<std::string> earlier_calls = {};
};

/// The measurement of each row, if any. It is that of the call which measured the most rows as they
/// are trained, the newest of several; a row that this call did not measure so shows its newest
/// measurement that did, else its newest one, and says why that is not comparable. `records` are
/// measurements of training, of any configs.
std::vector<std::optional<MeasuredSpeed>> choose_speeds(
    const TableSpec& table,
    const std::vector<SpeedRow>& rows,
    const std::vector<benchmark::Record>& records);

/// How the comparable speeds were measured, in one line; "" without any.
std::string describe_speeds(const std::vector<std::optional<MeasuredSpeed>>& speeds);

/// The command that measures all rows in one call.
std::string bench_command(const TableSpec& table);

}  // namespace forge::tables
