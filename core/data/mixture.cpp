#include "core/data/mixture.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::data {
namespace {

/// Whole numbers in proportion to the weights that add up to `total`: what is left after rounding
/// down goes to the largest remainders.
std::vector<int64_t> shares_of(const std::vector<double>& weights, int64_t total) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> shares;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double exact = weight / sum * static_cast<double>(total);
    shares.push_back(static_cast<int64_t>(exact));
    remainders.push_back(exact - static_cast<double>(shares.back()));
  }
  int64_t left = total - std::accumulate(shares.begin(), shares.end(), int64_t{0});
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return remainders[a] > remainders[b];
  });
  for (size_t i = 0; left > 0; ++i, --left) ++shares[order[i % order.size()]];
  return shares;
}

}  // namespace

/// Row j of a source with n of a period's P rows has its turn from floor(j P / n) on and before
/// ceil((j + 1) P / n). Where the sources' shares add up to P, taking the earliest deadline of
/// those whose time has come meets every one of them (Baruah et al., "Proportionate progress: a
/// notion of fairness in resource allocation", Algorithmica 1996).
Mixture::Mixture(const std::vector<double>& weights) {
  for (const double weight : weights) {
    if (!(weight > 0)) throw Error("a weight must be above 0, not " + shortest(weight));
  }
  if (weights.empty()) throw Error("a mixture needs something to mix");
  shares_ = shares_of(weights, period);
  const auto none = std::find(shares_.begin(), shares_.end(), 0);
  if (none != shares_.end()) {
    throw Error("the weight " + shortest(weights[size_t(none - shares_.begin())]) +
                " is less than one row in " + with_thousands(period) + " of all");
  }
  if (weights.size() == 1) return;
  std::vector<int64_t> given(weights.size());
  turns_.reserve(static_cast<size_t>(period));
  for (int64_t turn = 0; turn < period; ++turn) {
    size_t next = 0;
    int64_t earliest = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] == shares_[i] || given[i] * period / shares_[i] > turn) continue;
      const int64_t deadline = ((given[i] + 1) * period + shares_[i] - 1) / shares_[i];
      if (earliest != 0 && deadline >= earliest) continue;
      next = i;
      earliest = deadline;
    }
    turns_.push_back({static_cast<uint32_t>(next), static_cast<uint32_t>(given[next]++)});
  }
}

Mixture::Place Mixture::place_of(int64_t position) const {
  if (turns_.empty()) return {0, position};
  const Turn turn = turns_[static_cast<size_t>(position % period)];
  return {turn.source, position / period * shares_[turn.source] + turn.row};
}

int64_t Mixture::rows_of(size_t source, int64_t rows) const {
  if (turns_.empty()) return rows;
  const auto rest = turns_.begin() + rows % period;
  const int64_t of_rest =
      std::count_if(turns_.begin(), rest, [&](Turn turn) { return turn.source == source; });
  return rows / period * shares_[source] + of_rest;
}

}  // namespace forge::data
