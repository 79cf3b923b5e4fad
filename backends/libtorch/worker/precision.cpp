#include "backends/libtorch/worker/precision.h"

#include "core/base/error.h"
#include "core/config/fields.h"

namespace forge::worker {

at::ScalarType scalar_type(config::Precision precision) {
  switch (precision) {
    case config::Precision::float32: return at::kFloat;
    case config::Precision::float64: return at::kDouble;
    case config::Precision::bfloat16: break;
  }
  throw Error("train.precision " + config::name_of(precision) + " is not supported by this backend",
              {},
              "float32 or float64");
}

}  // namespace forge::worker
