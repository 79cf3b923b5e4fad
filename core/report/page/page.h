#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/report/page/assets.h"
#include "core/report/page/curve.h"
#include "core/report/sheet.h"
#include "core/statistics/sample.h"
#include "core/store/run_summary.h"

/// A project's results as one HTML file that asks nothing of any network.
namespace forge::report::page {

/// Which values of a column are the better ones.
enum class Better { unknown, lower, higher };

/// How a column's values are written: as they are, as a percentage, in GiB.
enum class Unit { plain, share, bytes };

/// What a column's figures are to a reader who weighs one against another.
struct Meaning {
  Better better = Better::unknown;
  bool is_cost = false;  ///< speed, memory, parameters: what quality is paid with
  Unit unit = Unit::plain;
  /// Of each row that of the mean over its seeds, where it is known; empty: of none.
  std::vector<std::optional<statistics::Interval>> intervals = {};
};

/// What stands behind a row of a table.
struct Origin {
  std::string name;                 ///< of the row, unlike those of all others
  std::vector<std::string> runs;    ///< their ids; the first is the one that the row shows
  std::vector<std::string> breaks;  ///< why it is compared with no other row; empty: it is
};

/// A table as it is shown.
struct Table {
  std::string name;
  Sheet sheet;
  std::vector<Meaning> meanings;  ///< of each column
  std::vector<Origin> origins;    ///< of each row
  std::vector<SetupEntry> setup;
};

struct Run {
  store::RunSummary summary;
  nlohmann::json config;  ///< resolved; null: not known
  Curve training;
  Curve evaluations;
  size_t recorded = 0;  ///< points of training that there are, of which `training` may be a choice
};

struct Page {
  std::string title;
  std::string project;
  std::vector<Table> tables;
  std::vector<Run> runs;
  std::vector<std::string> commands;  ///< make every number again
};

/// The file. The same page gives the same bytes. Throws Error where `assets` lack uPlot.
std::string to_html(const Page& page, const Assets& assets = embedded_assets());

/// What the page's script reads, before it is escaped for HTML.
nlohmann::ordered_json to_json(const Page& page);

}  // namespace forge::report::page
