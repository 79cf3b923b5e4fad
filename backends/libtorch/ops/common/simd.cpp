#include "backends/libtorch/ops/common/simd.h"

namespace forge::ops {

const char* simd_name() {
#if defined(__x86_64__) && defined(__GNUC__)
  switch (simd::width()) {
    case simd::Width::avx512: return "avx512";
    case simd::Width::avx2: return "avx2";
    case simd::Width::basic: break;
  }
#endif
  return "basic";
}

}  // namespace forge::ops
