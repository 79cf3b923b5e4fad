#include "core/run/halving.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::run {
namespace {

/// A run in the comparison of a rung.
struct Place {
  size_t contestant = 0;
  double loss = 0;
  bool is_promoted = false;
};

constexpr double worst = std::numeric_limits<double>::infinity();

double comparable(double loss) { return std::isfinite(loss) ? loss : worst; }

double loss_at(const Contestant& contestant, int rung) {
  return int(contestant.losses.size()) <= rung ? worst
                                               : comparable(contestant.losses[size_t(rung)]);
}

/// Those that have reached the rung, or failed on their way to it, best first.
std::vector<Place> places_at(const std::vector<Contestant>& contestants, int rung) {
  std::vector<Place> places;
  for (size_t i = 0; i < contestants.size(); ++i) {
    const Contestant& contestant = contestants[i];
    const bool has_reached = int(contestant.losses.size()) > rung;
    const bool has_failed =
        contestant.is_out && int(contestant.losses.size()) == rung && contestant.aim >= rung;
    if (has_reached || has_failed)
      places.push_back({i, loss_at(contestant, rung), contestant.aim > rung});
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& left, const Place& right) {
    return left.loss < right.loss;
  });
  return places;
}

/// Whether it may still reach the rung without a promotion.
bool is_on_its_way(const Contestant& contestant, int rung) {
  return !contestant.is_out && !contestant.has_arrived() && contestant.aim <= rung;
}

}  // namespace

bool is_better(double loss, double other) { return comparable(loss) < comparable(other); }

std::optional<size_t> best_contestant(const std::vector<Contestant>& contestants, int rungs) {
  std::optional<size_t> best;
  for (size_t i = 0; i < contestants.size(); ++i) {
    const double loss = loss_at(contestants[i], rungs - 1);
    if (loss < (best ? loss_at(contestants[*best], rungs - 1) : worst)) best = i;
  }
  return best;
}

std::vector<int64_t> rung_steps(const HalvingRule& rule, int64_t max_steps) {
  if (rule.first >= max_steps)
    throw Error("halving compares runs after " + std::to_string(rule.first) +
                    " steps, and train.max_steps is " + std::to_string(max_steps),
                "let 'first' be a part of the steps, such as a tenth");
  std::vector<int64_t> steps;
  for (int64_t step = rule.first; step < max_steps; step *= rule.eta) {
    steps.push_back(step);
    if (step > max_steps / rule.eta) break;  // before it overflows
  }
  steps.push_back(max_steps);
  return steps;
}

std::string halved_text(int64_t step, int64_t max_steps) {
  return "stopped at " + with_thousands(step) + " of " + with_thousands(max_steps) +
         " steps by halving";
}

bool is_halved(const std::string& reason) { return ends_with(reason, " by halving"); }

std::vector<NextRun> next_runs(const std::vector<Contestant>& contestants, int64_t eta, int rungs) {
  std::vector<NextRun> next;
  for (size_t i = 0; i < contestants.size(); ++i) {
    const Contestant& contestant = contestants[i];
    if (contestant.is_out || contestant.is_active) continue;
    if (contestant.aim < 0 || !contestant.has_arrived())
      next.push_back({i, std::max(contestant.aim, 0)});
  }
  bool is_settled = true;  // every lower rung, and who is on the way to this one
  for (int rung = 0; rung + 1 < rungs; ++rung) {
    is_settled =
        is_settled &&
        std::none_of(contestants.begin(), contestants.end(), [&](const Contestant& contestant) {
          return contestant.aim < 0 ? !contestant.is_out : is_on_its_way(contestant, rung);
        });
    const std::vector<Place> places = places_at(contestants, rung);
    size_t quota = places.size() / size_t(eta);
    if (is_settled && !places.empty()) quota = std::max<size_t>(quota, 1);
    bool promotes = false;
    for (size_t rank = 0; rank < quota; ++rank) {
      const Place& place = places[rank];
      if (place.is_promoted || place.loss == worst || contestants[place.contestant].is_out)
        continue;
      next.push_back({place.contestant, rung + 1, is_settled});
      promotes = true;
    }
    is_settled = is_settled && !promotes;
  }
  return next;
}

std::vector<Contestant> expected_end(std::vector<Contestant> contestants, int64_t eta, int rungs) {
  for (Contestant& contestant : contestants) contestant.is_active = false;
  while (true) {
    const std::vector<NextRun> next = next_runs(contestants, eta, rungs);
    const auto certain =
        std::find_if(next.begin(), next.end(), [](const NextRun& run) { return run.is_certain; });
    if (certain == next.end()) return contestants;
    Contestant& contestant = contestants[certain->contestant];
    contestant.aim = certain->rung;
    const double loss =
        contestant.losses.empty() ? std::numeric_limits<double>::max() : contestant.losses.back();
    contestant.losses.resize(size_t(certain->rung) + 1, loss);
  }
}

std::vector<int64_t> counts_at(const std::vector<Contestant>& contestants, int rungs) {
  std::vector<int64_t> counts(static_cast<size_t>(rungs));
  for (const Contestant& contestant : contestants)
    for (size_t rung = 0; rung < contestant.losses.size(); ++rung) ++counts[rung];
  return counts;
}

std::vector<int64_t> most_counts(int64_t runs, int64_t eta, int rungs) {
  std::vector<int64_t> counts = {runs};
  // The eta - 1 worst runs of a rung are never among its best 1/eta, whenever one looks.
  while (int(counts.size()) < rungs)
    counts.push_back(std::max<int64_t>(counts.back() - eta + 1, 1));
  return counts;
}

int64_t total_steps(const std::vector<int64_t>& counts, const std::vector<int64_t>& rung_steps) {
  int64_t total = 0, before = 0;
  for (size_t rung = 0; rung < counts.size(); ++rung) {
    total += counts[rung] * (rung_steps[rung] - before);
    before = rung_steps[rung];
  }
  return total;
}

std::string counts_text(const std::vector<int64_t>& counts,
                        const std::vector<int64_t>& rung_steps) {
  std::vector<std::string> parts;
  for (size_t rung = 0; rung < counts.size(); ++rung) {
    const std::string count =
        rung == 0 ? counted(size_t(counts[rung]), "run") : with_thousands(counts[rung]);
    parts.push_back(count + " to step " + with_thousands(rung_steps[rung]));
  }
  return join(parts, ", ");
}

}  // namespace forge::run
