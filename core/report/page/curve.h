#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

namespace forge::report::page {

struct CurvePoint {
  int64_t tokens = 0;  ///< trained on
  double seconds = 0;  ///< of wall time since training began; NaN: not known
  double loss = 0;     ///< NaN: no number
};

/// By tokens.
using Curve = std::vector<CurvePoint>;

/// At most `limit` points of the curve, at least 5: the first, the last, and of each stretch
/// between them the lowest, the highest, and the first without a number. So no spike is lost and
/// none moves, which a choice by the area of triangles (LTTB) does not promise.
Curve thinned(const Curve& curve, size_t limit);

/// For the page's script: {"count", "tokens", "seconds", "seconds_digits", "loss", "loss_digits"}.
/// Numbers are whole multiples of 10^-digits, of which the differences (of tokens and seconds the
/// differences of those) stand in base64 VLQ, as in source maps; "~" is no number. Losses keep four
/// decimals, or four digits of the lowest where that is more.
nlohmann::ordered_json encoded(const Curve& curve);

}  // namespace forge::report::page
