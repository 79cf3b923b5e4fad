#include "tests/support/torch_catch.h"

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "tests/support/vectors.h"

namespace forge::tests {
namespace {

TEST_CASE("every reference case of the canon convolution agrees in double and single precision",
          "[vectors]") {
  std::vector<std::filesystem::path> files = vector_files("op_canon_conv");
  if (files.empty()) files.push_back(shared_vector_file("op_canon_conv.json"));
  for (const auto& file : files) {
    const nlohmann::json content = read_json(file);
    for (const auto& c : content.at("cases")) {
      for (const auto& [type, tolerance] :
           {std::pair(at::kDouble, 1e-9), std::pair(at::kFloat, 5e-6)}) {
        INFO(c.at("name") << " " << at::toString(type));
        const int64_t batch = c.at("B"), length = c.at("T"), channels = c.at("C"),
                      kernel = c.at("K");
        const at::Tensor x =
            float32_tensor_of(c.at("x"), {batch, length, channels}, type).requires_grad_(true);
        const at::Tensor w =
            float32_tensor_of(c.at("w"), {channels, 1, kernel}, type).requires_grad_(true);
        const at::Tensor docs = c.at("doc_ids").is_null()
                                    ? at::Tensor()
                                    : tensor_of(c.at("doc_ids"), {batch, length}, at::kInt);
        const at::Tensor y = ops::canon_conv(x, w, {c.at("residual"), c.at("silu")}, docs);
        REQUIRE(largest_difference(y, tensor_of(c.at("y"), y.sizes(), at::kDouble)) <= tolerance);
        (y * float32_tensor_of(c.at("upstream"), y.sizes(), type)).sum().backward();
        REQUIRE(largest_difference(x.grad(), tensor_of(c.at("grad_x"), x.sizes(), at::kDouble)) <=
                tolerance);
        REQUIRE(largest_difference(w.grad(), tensor_of(c.at("grad_w"), w.sizes(), at::kDouble)) <=
                tolerance);
      }
    }
  }
}

}  // namespace
}  // namespace forge::tests
