#include "core/weights/dtype.h"

#include <array>

namespace forge::weights {
namespace {

struct Row {
  std::string name;
  size_t bytes;
};

/// In the order of the enumeration.
const std::array<Row, 7>& table() {
  static const std::array<Row, 7> rows = {
      {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"U8", 1}}};
  return rows;
}

const Row& row_of(Dtype dtype) { return table().at(static_cast<size_t>(dtype)); }

}  // namespace

size_t bytes_of(Dtype dtype) { return row_of(dtype).bytes; }

const std::string& name_of(Dtype dtype) { return row_of(dtype).name; }

std::optional<Dtype> dtype_of(std::string_view name) {
  for (size_t i = 0; i < table().size(); ++i) {
    if (table()[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

std::optional<size_t> bytes_of(Dtype dtype, const std::vector<int64_t>& shape) {
  constexpr size_t largest = size_t{1} << 62;
  size_t product = bytes_of(dtype);
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const auto factor = static_cast<size_t>(size);
    if (factor > 0 && product > largest / factor) return std::nullopt;
    product *= factor;
  }
  return product;
}

}  // namespace forge::weights
