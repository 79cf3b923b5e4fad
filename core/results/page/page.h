#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/results/metrics.h"
#include "core/results/page/assets.h"
#include "core/results/statistics/sample.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/sheet.h"

namespace forge::page {

/// By tokens.
using Curve = std::vector<store::LossPoint>;

/// At most `limit` points of the curve, at least 5: the first, the last, and of each bucket between
/// them the lowest, the highest, and the first that is not a number. So no spike is lost and none
/// moves, which largest-triangle downsampling (LTTB) does not promise.
Curve downsampled(const Curve& curve, size_t limit);

/// For the page's script: {"count", "tokens", "seconds", "seconds_digits", "loss", "loss_digits"}.
/// Numbers are whole multiples of 10^-digits, of which the differences (of tokens and seconds the
/// differences of those) stand in base64 VLQ, as in source maps; "~" is no number. Losses keep four
/// decimals, or four digits of the lowest where that is more.
nlohmann::ordered_json encoded(const Curve& curve);

/// The values of a config by dotted key, as they are shown.
using FlatConfig = std::map<std::string, std::string>;

/// Several configs as what most of them have and what each has of its own.
struct Configs {
  FlatConfig common;                            ///< for every key the value that most configs have
  std::vector<FlatConfig> changes;              ///< of each config, where it has another value
  std::vector<std::vector<std::string>> lacks;  ///< keys of `common` that a config does not have
  std::vector<std::string> harmless;            ///< keys that changed no metric of any of the runs
  std::vector<size_t> of_run;                   ///< which config each run has
};

/// Of the resolved configs of runs. The seed, the name and the description make no other config.
Configs compare_configs(const std::vector<nlohmann::json>& of_runs);

nlohmann::ordered_json to_json(const Configs& configs);

// A project's results as one HTML file that asks nothing of any network.

/// What a column's metrics are to a reader who weighs one against another.
struct ColumnInfo {
  std::optional<results::Direction> better;  ///< none: not known
  bool is_cost = false;  ///< speed, memory, parameters: what quality is paid with
  results::Unit unit = results::Unit::number;
  /// Of each row that of the mean over its seeds, where it is known; empty: of none.
  std::vector<std::optional<statistics::Interval>> intervals = {};
  /// Of each row why its metric ranks it against no other; empty texts: it does. Empty: all do.
  std::vector<std::string> doubts = {};
};

/// What stands behind a row of a table.
struct RowSource {
  std::string name;                     ///< of the row, unlike those of all others
  std::vector<std::string> runs;        ///< their ids; the first is the one that the row shows
  std::vector<std::string> violations;  ///< why it is compared with no other row; empty: it is
};

/// A table as it is shown.
struct Table {
  std::string name;
  tables::Sheet sheet;
  std::vector<ColumnInfo> columns;     ///< of each column
  std::vector<RowSource> row_sources;  ///< of each row
  std::vector<tables::SetupEntry> setup;
};

struct Run {
  store::RunSummary summary;
  nlohmann::json config;  ///< resolved; null: not known
  Curve training;
  Curve evaluations;
  size_t total_points =
      0;  ///< points of training that there are, of which `training` may be a choice
};

struct Page {
  std::string title;
  std::string project;
  std::vector<Table> tables;
  std::vector<Run> runs;
  std::vector<std::string> varied;    ///< keys in which runs of one config differ, as a sweep's do
  std::vector<std::string> commands;  ///< make every number again
};

/// The file. The same page gives the same bytes. Throws Error where `assets` lack uPlot.
std::string to_html(const Page& page, const Assets& assets = embedded_assets());

/// What the page's script reads, before it is escaped for HTML.
nlohmann::ordered_json to_json(const Page& page);

/// The page of a project: its tables as they are, the curves and configs of all its runs below
/// `runs_dir` that are not archived, as the store has them. A curve keeps at most a thousand
/// points, fewer where there are more than a hundred runs. `workspace`: its root, as of RunFilter.
/// `progress` counts the runs.
Page collect_page(const std::string& project,
                  const std::string& workspace,
                  const std::string& title,
                  const std::vector<tables::Ablation>& tables,
                  const std::filesystem::path& runs_dir,
                  const CountProgress& progress = {});

}  // namespace forge::page
