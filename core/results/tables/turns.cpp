#include "core/results/tables/turns.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/clock.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/tables/run_times.h"

namespace forge::tables {
namespace {

using Run = store::RunSummary;

/// Whole seconds of a run's time; none where its files say something else.
std::optional<double> seconds_of(const std::string& time) { return time_from(time.substr(0, 19)); }

double wall_seconds_of(const Run& run) {
  return run.metric(results::wall_seconds_name).value_or(0);
}

/// Whether only a part of what was measured is of the time at which the run was begun.
bool is_of_several_times(const Run& run) { return run.resumptions > 0 || run.continued != 0; }

/// The runs of one seed of two rows, or of one place in their order: the one that was begun first
/// and the other.
struct Pair {
  const Run *first, *second;
  bool is_own_first;
};

double begin_of(const Run& run) { return seconds_of(begun_at(run)).value_or(0); }

Pair pair_of(const Run& own, const Run& other) {
  const bool is_own_first = begun_at(own) <= begun_at(other);
  return {is_own_first ? &own : &other, is_own_first ? &other : &own, is_own_first};
}

/// Whether forge drew which of the two comes first.
bool is_drawn(const Pair& pair) {
  return !pair.first->drawn_order.empty() && pair.first->drawn_order == pair.second->drawn_order;
}

using Runs = std::vector<const Run*>;

Runs in_order(const AblationRow& row) {
  Runs runs;
  for (const Run& run : row.runs) runs.push_back(&run);
  std::stable_sort(runs.begin(), runs.end(), [](const Run* a, const Run* b) {
    return begun_at(*a) < begun_at(*b);
  });
  return runs;
}

std::vector<Pair> pairs_in_order(const Runs& own, const Runs& others) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < std::min(own.size(), others.size()); ++i)
    pairs.push_back(pair_of(*own[i], *others[i]));
  return pairs;
}

/// Those of each seed that both rows have, then of what is left in order.
std::vector<Pair> pairs_by_seed(Runs own, Runs others) {
  std::vector<Pair> pairs;
  const auto take_pair = [&](const Run* run) {
    const auto other = std::find_if(
        others.begin(), others.end(), [&](const Run* each) { return each->seed == run->seed; });
    if (other == others.end()) return false;
    pairs.push_back(pair_of(*run, **other));
    others.erase(other);
    return true;
  };
  own.erase(std::remove_if(own.begin(), own.end(), take_pair), own.end());
  for (const Pair& rest : pairs_in_order(own, others)) pairs.push_back(rest);
  return pairs;
}

/// Which pairs of runs of two rows were made in turn.
struct TurnRule {
  const BusyTimes& busy;
  double usual = 600;  ///< a break that is no longer, or than any of the runs took, changes nothing
  double at_once;      ///< runs that begin within so many seconds do so at once, on several devices

  TurnRule(const Runs& own, const Runs& others, const BusyTimes& busy_times) : busy(busy_times) {
    double shortest = wall_seconds_of(*own.front());
    for (const Runs* runs : {&own, &others}) {
      for (const Run* run : *runs) {
        usual = std::max(usual, wall_seconds_of(*run));
        shortest = std::min(shortest, wall_seconds_of(*run));
      }
    }
    at_once = std::min(usual, shortest / 10);
  }

  /// Whether the machine was left alone for long between the end of one and the begin of the other.
  bool is_apart(const Pair& pair) const {
    const std::optional<double> ended = seconds_of(pair.first->updated);
    const std::optional<double> begin = seconds_of(begun_at(*pair.second));
    if (!ended || !begin) return false;
    double end = *ended;
    for (const auto& [from, to] : busy) {
      if (to <= end) continue;
      if (from >= *begin || from - end > usual) break;
      end = to;
    }
    return *begin - end > usual;
  }

  /// Whether nothing was trained right before the run: the machine may be cold, or caches empty.
  bool follows_break(const Run& run) const {
    const double begin = begin_of(run);
    double end = -1e18;
    for (const auto& [from, to] : busy) {
      if (from >= begin) break;
      end = to;
    }
    return begin - end > usual;
  }

  bool are_neighbours(const Pair& pair) const {
    return !is_of_several_times(*pair.first) && !is_of_several_times(*pair.second) &&
           !is_apart(pair);
  }

  /// Whether one row's runs came first so often after breaks of the machine.
  bool begins_after_breaks(const std::vector<Pair>& pairs) const {
    int64_t own = 0, other = 0;
    for (const Pair& pair : pairs) {
      const bool is_at_once = begin_of(*pair.second) - begin_of(*pair.first) <= at_once;
      if (is_at_once || !are_neighbours(pair) || !follows_break(*pair.first)) continue;
      ++(pair.is_own_first ? own : other);
    }
    return would_seem_real(own, other, pairs.size());
  }

  /// As many pairs of neighbours as there are of which none was begun within another.
  size_t count_in_turn(std::vector<Pair> pairs) const {
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
      return begin_of(*a.second) < begin_of(*b.second);
    });
    size_t count = 0;
    double end = 0;  // of the pair before: intervals that end first leave the most room
    for (const Pair& pair : pairs) {
      if (!are_neighbours(pair) || begin_of(*pair.first) < end - at_once) continue;
      end = begin_of(*pair.second);
      ++count;
    }
    return count;
  }
};

Turns turns_of(const AblationRow& row, const AblationRow& other, const BusyTimes& busy) {
  const Runs own = in_order(row), others = in_order(other);
  const TurnRule rule(own, others, busy);
  std::vector<Pair> pairs = pairs_by_seed(own, others);
  size_t in_turn = rule.count_in_turn(pairs);
  // Seeds may have been given to the rows in another order.
  if (std::vector<Pair> in_order = pairs_in_order(own, others);
      rule.count_in_turn(in_order) > in_turn) {
    in_turn = rule.count_in_turn(in_order);
    pairs = std::move(in_order);
  }
  // A single one is an outlier that the interval has in it: t is 1 by it alone. One pair is in turn
  // with itself, whatever the order.
  if (in_turn < 2 || std::max(own.size(), others.size()) > in_turn + 1)
    return Turns::one_after_another;
  const auto near = std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) {
    return is_drawn(pair) || begin_of(*pair.second) - begin_of(*pair.first) <= longest_apart;
  });
  if (static_cast<size_t>(near) < std::max<size_t>(2, pairs.size() - 1)) return Turns::hours_apart;
  if (rule.begins_after_breaks(pairs)) return Turns::one_row_begins;
  int64_t own_first = 0, other_first = 0;
  for (const Pair& pair : pairs)
    if (begun_at(*pair.first) != begun_at(*pair.second))
      ++(pair.is_own_first ? own_first : other_first);
  return would_seem_real(own_first, other_first, pairs.size()) ? Turns::one_row_first
                                                               : Turns::in_turn;
}

}  // namespace

bool would_seem_real(int64_t one_way, int64_t other_way, size_t pairs) {
  constexpr double seldom = 0.1;
  if (pairs < 2 || one_way == other_way) return false;
  const auto n = static_cast<double>(pairs);
  const double mean = static_cast<double>(one_way - other_way) / n;
  const double variance =
      (static_cast<double>(one_way + other_way) / n - mean * mean) * n / (n - 1);
  if (variance <= 0) return true;
  return statistics::student_t_two_sided_p(mean / std::sqrt(variance / n), n - 1) <= seldom;
}

std::string turns_text(const std::string& quantity, Turns turns) {
  switch (turns) {
    case Turns::in_turn: return "";
    case Turns::one_row_first: return quantity + " measured in one order";
    case Turns::one_row_begins: return quantity + " of one row measured after breaks";
    case Turns::hours_apart: return quantity + " measured hours apart";
    case Turns::one_after_another: break;
  }
  return quantity + " not measured in turn";
}

BusyTimes busy_times(const std::vector<store::ConfiguredRun>& runs,
                     const AblationOptions& options) {
  BusyTimes times;
  for (const auto* some : {&runs, &options.filtered_out, &options.archived}) {
    for (const store::ConfiguredRun& run : *some) {
      const std::optional<double> begin = seconds_of(begun_at(run.summary)),
                                  end = seconds_of(run.summary.updated);
      // Between its attempts nothing may have been trained.
      if (begin && end && !is_of_several_times(run.summary)) times.emplace_back(*begin, *end);
    }
  }
  std::sort(times.begin(), times.end());
  size_t kept = 0;
  for (const auto& time : times) {
    if (kept > 0 && time.first <= times[kept - 1].second) {
      times[kept - 1].second = std::max(times[kept - 1].second, time.second);
    } else {
      times[kept++] = time;
    }
  }
  times.resize(kept);
  return times;
}

Turns turns_of(const std::vector<const AblationRow*>& rows, const BusyTimes& busy) {
  Turns turns = Turns::in_turn;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const AblationRow &a = *rows[j], &b = *rows[i];
      if (a.group != b.group || a.runs.size() < 2 || b.runs.size() < 2) continue;
      turns = std::max(turns, turns_of(a, b, busy));
    }
  }
  return turns;
}

}  // namespace forge::tables
