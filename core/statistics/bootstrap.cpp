#include "core/statistics/bootstrap.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/statistics/distributions.h"

namespace forge::statistics {
namespace {

/// Deviations from the mean: sums of them keep the digits that sums of the values would lose. The
/// mean is rounded, so what is left of it is taken off as well.
std::vector<double> deviations(const std::vector<double>& values, double mean) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) result.push_back(value - mean);
  const std::optional<Moments> rest = moments_of(result);
  for (double& deviation : result) deviation -= rest ? rest->mean : 0;
  return result;
}

/// Uniform numbers below `count` without bias (D. Lemire's multiply-and-reject), two of each random
/// word: making these is most of the work.
class Draws {
 public:
  Draws(size_t count, uint64_t seed)
      : random_(seed, stream_number("bootstrap")),
        count_(static_cast<uint32_t>(count)),
        rejected_below_(halves % count_) {}

  size_t next() {
    while (true) {
      word_ = first_half_ ? random_.next_u32() : word_ >> 16;
      first_half_ = !first_half_;
      const uint32_t product = word_ % halves * count_;
      if (product % halves >= rejected_below_) return product / halves;
    }
  }

  static constexpr uint32_t halves = 0x10000;  ///< values that half a word has

 private:
  RandomStream random_;
  uint32_t count_;
  uint32_t rejected_below_;
  uint32_t word_ = 0;
  bool first_half_ = true;
};

/// Means of the resamples.
std::vector<double> resampled_means(const std::vector<double>& values, uint64_t seed) {
  Draws draws(values.size(), seed);
  const auto n = static_cast<double>(values.size());
  std::vector<double> means(bootstrap_resamples);
  for (double& mean : means) {
    double sum = 0;
    for (size_t k = 0; k < values.size(); ++k) sum += values[draws.next()];
    mean = sum / n;
  }
  return means;
}

/// The place of the estimate, which is 0, among the means of the resamples, as a normal quantile:
/// what the bootstrap is off to one side. Those that equal it but for rounding count half.
double bias(const std::vector<double>& means, double standard_deviation) {
  const double rounding = 1e-12 * standard_deviation;
  double below = 0;
  for (const double mean : means) below += mean < -rounding ? 1 : mean <= rounding ? 0.5 : 0;
  const double count = static_cast<double>(means.size());
  return normal_quantile(std::clamp(below / count, 0.5 / count, 1 - 0.5 / count));
}

/// A sixth of the skewness of the mean, from leaving out one value at a time: how fast its standard
/// error changes with it.
double acceleration(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::fabs(value));
  double squares = 0;
  double cubes = 0;
  for (const double value : values) {
    const double scaled = value / largest;
    squares += scaled * scaled;
    cubes += scaled * scaled * scaled;
  }
  return cubes / (6 * squares * std::sqrt(squares));
}

/// The share of the resamples below an end of the interval that lies `reach` standard errors from
/// the middle where nothing is biased or skewed.
double share_below(double reach, double bias, double acceleration) {
  const double shifted = bias + reach;
  const double scale = 1 - acceleration * shifted;
  if (scale <= 0) return shifted < 0 ? 0 : 1;  // a skewness that no finite quantile answers
  return normal_cdf(bias + shifted / scale);
}

/// Below it lies that share of the values: between two of them by linear interpolation. Reorders
/// them.
double quantile(std::vector<double>& values, double share) {
  const double place = share * static_cast<double>(values.size() - 1);
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), nth, values.end());
  if (nth + 1 == values.end()) return *nth;
  return *nth + (place - std::floor(place)) * (*std::min_element(nth + 1, values.end()) - *nth);
}

}  // namespace

Interval bootstrap_interval(const std::vector<double>& values, uint64_t seed, double confidence) {
  if (!(confidence > 0 && confidence < 1))
    throw Error("a confidence lies between 0 and 1, " + shortest(confidence) + " does not");
  const std::optional<Moments> moments = moments_of(values);
  if (!moments || moments->n < 2)
    throw Error("a bootstrap needs at least two values, all of them finite");
  if (moments->n >= Draws::halves)
    throw Error("a bootstrap takes less than 65,536 values, not " + std::to_string(moments->n));
  const double mean = moments->mean;
  if (moments->standard_deviation == 0) return {mean, mean};
  const std::vector<double> centred = deviations(values, mean);
  std::vector<double> means = resampled_means(centred, seed);
  const double off = bias(means, moments->standard_deviation);
  const double skew = acceleration(centred);
  // Resamples vary like the sample with n below, not n − 1, and know nothing of its few values.
  const auto n = static_cast<double>(moments->n);
  const double reach = std::sqrt(n / (n - 1)) * student_t_reach(confidence, n - 1);
  return {mean + quantile(means, share_below(-reach, off, skew)),
          mean + quantile(means, share_below(reach, off, skew))};
}

}  // namespace forge::statistics
