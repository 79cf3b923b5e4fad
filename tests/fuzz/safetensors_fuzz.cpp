// libFuzzer target: whatever the bytes of a safetensors file are, the reader refuses them with an
// Error or gives views that lie inside them.

#include <cstdlib>

#include "core/base/error.h"
#include "core/model/weights/dtype.h"
#include "core/model/weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace forge::weights;
  try {
    const auto contents = read_safetensors(reinterpret_cast<const std::byte*>(bytes), size);
    volatile unsigned sum =
        0;  // every byte is touched, so that ASan sees a view that leads outside
    for (const auto& [name, tensor] : contents.tensors) {
      for (size_t i = 0; i < tensor.bytes; ++i) sum = sum + static_cast<unsigned>(tensor.data[i]);
      if (is_floating(tensor.dtype)) {
        try {
          to_float32(tensor);
        } catch (const forge::Error&) {
          // A float64 beyond the range of float32.
        }
      }
    }
  } catch (const forge::Error& error) {
    if (error.message().empty()) std::abort();
  }
  return 0;
}
