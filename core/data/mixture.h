#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace forge::data {

/// The order in which several sources of rows take turns: after any number of rows each has given
/// its share of them to within one row. The order follows from the weights alone and is the same on
/// any machine; it repeats itself after `period` rows, so weights are rounded to as many parts.
class Mixture {
 public:
  static constexpr int64_t period = 100'000;

  /// Throws Error where a weight is not above 0, or so small that it stands for no row of a period.
  explicit Mixture(const std::vector<double>& weights);

  /// A row of one of the sources: its row number `row`, from 0 on, of all that it ever gives.
  struct Place {
    size_t source = 0;
    int64_t row = 0;
  };
  /// Where row `position` of the mixture comes from. Takes the same time anywhere.
  Place place_of(int64_t position) const;

  /// How many of the mixture's first `rows` rows come from a source.
  int64_t rows_of(size_t source, int64_t rows) const;

  /// Of a source, in rows a period.
  int64_t share(size_t source) const { return shares_[source]; }

 private:
  struct Turn {
    uint32_t source;
    uint32_t row;
  };

  std::vector<int64_t> shares_;
  std::vector<Turn> turns_;  ///< of a period; none where there is one source
};

}  // namespace forge::data
