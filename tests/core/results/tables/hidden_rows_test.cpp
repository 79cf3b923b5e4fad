// What a table does not show makes nothing else in it clearer: random projects, and the same ones
// with a row of their table taken away in each way that there is.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/parameters.h"
#include "core/results/tables/verdicts.h"
#include "tests/core/results/tables/lab.h"
#include "tests/core/results/tables/simulated_tables.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using simulated::normal;
using store::ConfiguredRun;

/// A table of a project, with the runs that it is made of.
struct RandomProject {
  TableSpec table;
  std::vector<ConfiguredRun> runs;
  AblationOptions options;
};

/// Draws projects whose tables say something of some rows and nothing of others.
class Draws {
 public:
  explicit Draws(RandomStream& random) : random_(random) {}

  int below(int bound) { return static_cast<int>(random_.below(static_cast<uint64_t>(bound))); }
  bool chance(double share) { return random_.uniform() < share; }
  template <class T>
  T one_of(const std::vector<T>& values) {
    return values[random_.below(values.size())];
  }

  RandomProject project() {
    RandomProject made;
    made.table = table(2 + below(4));
    std::map<int64_t, double> of_seed;
    for (int64_t seed = 1; seed <= 8; ++seed) of_seed[seed] = normal(random_);
    const int seeds = 3 + below(4);
    const int values = made.table.by.empty() ? 1 : 1 + below(4);
    const bool has_one_profile = chance(0.5), has_one_floor = chance(0.5);
    const bool has_one_size = chance(0.6);
    std::map<std::string, nlohmann::json> current;
    for (const RowSpec& row : made.table.rows) {
      config::Experiment experiment;
      experiment.model.num_layers = has_one_size ? 2 : 1 + below(3);
      experiment.profile = has_one_profile || chance(0.7) ? "full" : "quick";
      if (is_equal(made.table, "profile")) experiment.profile = "full";
      const bool has_other_floor = !is_equal(made.table, "data") && !has_one_floor && chance(0.3);
      const double of_row = one_of<double>({0, 0, -1, -3, -3.2, 2});
      const double spread = one_of<double>({0.2, 0.5, 1, 4});
      current[row.config] = config::to_json(experiment);
      const int of_its_own = chance(0.2) ? 2 + below(seeds - 1) : seeds;
      for (int value = 0; value < values; ++value) {
        if (value > 0 && chance(0.15)) continue;
        experiment.optimizer.lr = values == 1 ? experiment.optimizer.lr : 0.001 * (value + 1);
        const int begun = one_of<int>({0, 0, 0, 40, 90}) + below(20);
        for (int64_t seed = 1; seed <= of_its_own; ++seed) {
          experiment.seed = static_cast<uint64_t>(seed);
          const int minute = begun + 6 * static_cast<int>(seed) + below(6);
          ConfiguredRun run = run_of(row.config, experiment, seeds, minute);
          const double loss = 10 + of_row + 0.5 * of_seed[seed] + spread * normal(random_);
          run.summary.metrics["eval_loss"] = loss;
          run.summary.metrics["train_loss"] = loss + 0.1 * normal(random_);
          run.summary.metrics["tokens_per_second"] =
              1000 + 100 * of_row + 5 * spread * normal(random_);
          run.summary.entropy_floor = has_other_floor ? 0.4 : 0.45;
          run.summary.id += "-" + std::to_string(made.runs.size());
          made.runs.push_back(std::move(run));
        }
      }
      if (chance(0.2)) add_earlier_set(row.config, experiment, of_its_own, made);
    }
    made.options.project_tables = {made.table};
    made.options.current_config = [current](const std::string& config,
                                            const std::string&,
                                            const std::string&) { return current.at(config); };
    std::map<std::string, double> end;
    for (const ConfiguredRun& run : made.runs)
      end[run.summary.id] = run.summary.metrics.at("eval_loss");
    made.options.evaluations = [end](const std::string& id) {
      std::vector<store::LossPoint> curve;
      for (int64_t step = 1; step <= 100; ++step)
        curve.push_back({step, 1000 * step, end.at(id) + std::sin(end.at(id) * 9 + 30.0 / step)});
      curve.back().loss = end.at(id);
      return curve;
    };
    return made;
  }

 private:
  static bool is_equal(const TableSpec& table, const std::string& what) {
    return std::count(table.must_be_equal.begin(), table.must_be_equal.end(), what) > 0;
  }

  TableSpec table(int rows) {
    TableSpec table;
    table.name = "drawn";
    for (int row = 0; row < rows; ++row) {
      const std::string name = "row_" + std::to_string(row);
      table.rows.push_back({name, name, "", ""});
    }
    const auto config = [&] { return one_of(table.rows).config; };
    table.baseline = config();
    table.must_be_equal = {"optimizer.eps"};
    for (const char* what : {"profile", "data", "evaluation"})
      if (chance(0.6)) table.must_be_equal.emplace_back(what);
    if (chance(0.7)) table.parameters_within = table.flops_within = std::nullopt;
    table.columns = {{ColumnKind::metric, "Loss", "eval_loss"}};
    for (const char* metric : {"eval_loss_above_floor",
                               "train_loss",
                               results::loss_at_equal_flops_name,
                               results::loss_at_equal_time_name})
      if (chance(0.25)) table.columns.push_back({ColumnKind::metric, metric, metric});
    if (chance(0.2)) table.columns.erase(table.columns.begin());
    if (table.columns.empty()) table.columns = {{ColumnKind::metric, "Loss", "eval_loss"}};
    if (chance(0.3)) {
      group_by(table, "optimizer.lr");
      return table;
    }
    for (int i = below(5); i > 0; --i) {
      ClaimSpec claim;
      claim.profile = one_of<std::string>({"full", "full", "quick"});
      claim.config = config();
      claim.below = config();
      if (claim.config == claim.below) {
        claim.below = "";
        claim.score = one_of<std::string>({"eval_loss", "tokens_per_second"});
        claim.at_most = claim.score == "eval_loss" ? 9 : 990;
      }
      table.claims.push_back(claim);
    }
    return table;
  }

  static std::string time(int minute) {
    char text[64];
    std::snprintf(text,
                  sizeof text,
                  "2026-11-%02dT%02d:%02d:00.000Z",
                  1 + minute / 1440,
                  minute / 60 % 24,
                  minute % 60);
    return text;
  }

  static ConfiguredRun run_of(const std::string& config,
                              const config::Experiment& experiment,
                              int planned,
                              int minute) {
    ConfiguredRun made;
    made.config = config::to_json(experiment);
    store::RunSummary& run = made.summary;
    run.id = config;
    run.config = config;
    run.profile = experiment.profile;
    run.seed = static_cast<int64_t>(experiment.seed);
    run.status = run::RunState::completed;
    run.created = time(1000 + minute);
    run.updated = time(1000 + minute + 10);
    run.step = run.max_steps = 100;
    run.tokens_per_step = 1000;
    run.tokens = 100000;
    run.parameters = model::parameter_count(experiment.model);
    for (int seed = 1; seed <= planned; ++seed)
      run.planned_seeds += (seed > 1 ? "," : "") + std::to_string(seed);
    return made;
  }

  /// Runs of other settings that were made before, and are archived.
  void add_earlier_set(const std::string& config,
                       config::Experiment experiment,
                       int seeds,
                       RandomProject& made) {
    experiment.optimizer.eps = 2e-8;
    for (int64_t seed = 1; seed <= seeds; ++seed) {
      experiment.seed = static_cast<uint64_t>(seed);
      ConfiguredRun run = run_of(config, experiment, seeds, -500);
      run.summary.id += "-other-" + std::to_string(seed);
      run.summary.metrics["eval_loss"] = 10 + normal(random_);
      made.options.archived.push_back(std::move(run));
    }
  }

  RandomStream& random_;
};

using IsHidden = std::function<bool(const ConfiguredRun&)>;

/// Moves the runs out of those that the table shows.
void take_out(const IsHidden& is_hidden, std::vector<ConfiguredRun>* taken, RandomProject& made) {
  std::vector<ConfiguredRun> shown;
  for (ConfiguredRun& run : made.runs) {
    if (!is_hidden(run))
      shown.push_back(std::move(run));
    else if (taken)
      taken->push_back(std::move(run));
  }
  made.runs = std::move(shown);
}

void change_first(const IsHidden& is_hidden,
                  RandomProject& made,
                  const std::function<void(store::RunSummary&)>& change) {
  for (ConfiguredRun& run : made.runs)
    if (is_hidden(run)) return change(run.summary);
}

/// A way to let a table say nothing of a row.
struct Way {
  const char* name;
  std::function<void(const IsHidden&, RandomProject&)> hide;
  bool is_of_whole_rows =
      false;  ///< what was removed without a trace may have been a value of --by
};

std::vector<Way> ways() {
  return {
      {"archived",
       [](const IsHidden& is_hidden, RandomProject& made) {
         take_out(is_hidden, &made.options.archived, made);
       }},
      {"left out by --where",
       [](const IsHidden& is_hidden, RandomProject& made) {
         made.options.filter = {"a condition"};
         take_out(is_hidden, &made.options.filtered_out, made);
       }},
      {"missing",
       [](const IsHidden& is_hidden, RandomProject& made) { take_out(is_hidden, nullptr, made); },
       true},
      {"diverged",
       [](const IsHidden& is_hidden, RandomProject& made) {
         change_first(is_hidden, made, [](store::RunSummary& run) {
           for (const char* metric : {"eval_loss", "train_loss"}) run.metrics[metric] = INFINITY;
         });
       }},
      {"a seed was stopped",
       [](const IsHidden& is_hidden, RandomProject& made) {
         change_first(is_hidden, made, [](store::RunSummary& run) {
           run.status = run::RunState::stopped;
           run.metrics.clear();
         });
       }},
      {"at another floor",
       [](const IsHidden& is_hidden, RandomProject& made) {
         for (ConfiguredRun& run : made.runs)
           if (is_hidden(run)) run.summary.entropy_floor.reset();
       }},
      {"a seed without a metric", [](const IsHidden& is_hidden, RandomProject& made) {
         change_first(
             is_hidden, made, [](store::RunSummary& run) { run.metrics.erase("train_loss"); });
       }}};
}

/// What of `less` is clearer than in the whole table, a line each. Nothing is asked of the hidden
/// row itself.
std::string clearer_in(const Ablation& less,
                       const Ablation& whole,
                       const std::function<bool(const AblationRow&)>& is_hidden) {
  const Verdicts verdicts = verdicts_of(less), of_whole = verdicts_of(whole);
  std::string found;
  const auto compare =
      [&](const std::string& what, std::optional<double> p, std::optional<double> of_all) {
        if (p.value_or(1) < of_all.value_or(1) * (1 - 1e-5) - 1e-12)
          found += what + ": p " + std::to_string(*p) + ", of the whole table " +
                   (of_all ? std::to_string(*of_all) : "none") + "\n";
      };
  for (const auto& [metric, cells] : verdicts.cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const AblationRow& row = less.rows[i];
      const AblationRow* const same = find_row(whole, row.spec.config, row.group);
      if (!same || is_hidden(row)) continue;
      const Cell& cell = of_whole.cells.at(metric)[static_cast<size_t>(same - whole.rows.data())];
      const std::string what = metric + " of " + row.spec.config + " " + row.group;
      compare(what, cells[i].p, cell.p);
      compare(what + ", the best", cells[i].best_p, cell.best_p);
      const bool is_clear =
          cells[i].standing == Standing::better || cells[i].standing == Standing::worse;
      if (is_clear && cells[i].standing != cell.standing)
        found +=
            what + ": " + name_of(cells[i].standing) + ", was " + name_of(cell.standing) + "\n";
      if (cells[i].best && !cell.best) found += what + " is the best\n";
    }
  }
  for (size_t i = 0; i < verdicts.claims.size(); ++i) {
    const JudgedClaim &claim = verdicts.claims[i], &of_all = of_whole.claims[i];
    compare(claim.claim, claim.p, of_all.p);
    if (claim.verdict != Verdict::not_decidable && claim.verdict != of_all.verdict)
      found += verdict_line(claim) + "\n  was " + verdict_line(of_all) + "\n";
  }
  return found;
}

TEST_CASE("what is hidden makes no verdict clearer", "[verdicts]") {
  const int projects = simulated_tables(60);
  RandomStream random(simulation_seed(), stream_number("hidden rows"));
  Draws draws(random);
  int verdicts = 0;
  for (int i = 0; i < projects; ++i) {
    const RandomProject whole = draws.project();
    const Ablation table = build_ablation(whole.table, whole.runs, whole.options);
    for (const auto& [metric, cells] : verdicts_of(table).cells)
      for (const Cell& cell : cells)
        verdicts += cell.standing == Standing::better || cell.standing == Standing::worse;
    const RowSpec row = draws.one_of(whole.table.rows);
    const double lr = draws.one_of(whole.runs).config.at("optimizer").at("lr");
    const bool is_of_value = !whole.table.by.empty() && draws.chance(0.6);
    const bool is_of_all = is_of_value && draws.chance(0.5);
    const std::string value = is_of_value ? shortest(lr) : "";
    const auto is_hidden = [&](const ConfiguredRun& run) {
      return (is_of_all || run.summary.config == row.config) &&
             (!is_of_value || run.config.at("optimizer").at("lr") == lr);
    };
    for (const Way& way : ways()) {
      if (way.is_of_whole_rows && !whole.table.by.empty()) continue;
      RandomProject less = whole;
      way.hide(is_hidden, less);
      const std::string found =
          clearer_in(build_ablation(less.table, less.runs, less.options),
                     table,
                     [&](const AblationRow& of_less) {
                       return (is_of_all || of_less.spec.config == row.config) &&
                              (!is_of_value || std::strtod(of_less.group.c_str(), nullptr) == lr);
                     });
      INFO("project " << i << " of seed " << simulation_seed() << ", "
                      << (is_of_all ? "all rows" : row.config) << " " << value << " " << way.name
                      << "\n"
                      << found);
      CHECK(found.empty());
    }
  }
  CHECK(verdicts > projects / 10);
}

}  // namespace
}  // namespace forge::tables
