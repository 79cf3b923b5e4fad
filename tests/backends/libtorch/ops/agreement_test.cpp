// Every operation against its reference in float64, forward and backward, in every type that a
// device knows and over awkward sizes: those that fill no vector or block, those one beyond, none
// at all, and those that a kernel leaves to the composed form. Runs on FORGE_TEST_DEVICE.
#include "tests/support/torch_catch.h"

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/ops/embedding/embedding.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/ops/rotary/rotary.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"
#include "tests/support/tensors.h"

namespace forge::tests {
namespace {

using Tensors = std::vector<at::Tensor>;
using ZLoss = ops::CrossEntropyOptions::ZLoss;

struct Shape {
  int64_t batch, length, channels;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << "B " << shape.batch << " T " << shape.length << " C " << shape.channels << " ";
}

/// Lengths around a chunk of 64 tokens and the block sizes of attention with few and many channels,
/// and long rows of channels.
std::vector<Shape> awkward_shapes() {
  std::vector<Shape> shapes = {{0, 9, 24}, {3, 0, 8}, {1, 1, 4097}, {1, 66, 4096}, {1, 3, 4097}};
  for (const int64_t length : {1, 2, 3, 64, 65, 129, 151}) {
    for (const int64_t channels : {1, 2, 3, 8, 129, 152}) shapes.push_back({2, length, channels});
  }
  return shapes;
}

at::TensorOptions ints() { return at::TensorOptions(test_device()).dtype(at::kInt); }

/// Documents of a few tokens, another division in each row.
at::Tensor short_documents(int64_t batch, int64_t length) {
  const at::Tensor shift = at::arange(batch, ints()).unsqueeze(1) * 2;
  return (at::arange(length, ints()).unsqueeze(0) + shift).floor_divide(5).to(at::kInt);
}

/// What a Canon layer may be.
enum class Layer { none, plain, without_residual, within_documents, with_activation };
constexpr Layer layers[] = {Layer::none,
                            Layer::plain,
                            Layer::without_residual,
                            Layer::within_documents,
                            Layer::with_activation};

ops::CanonLayer layer_of(Layer layer, const at::Tensor& weight, int64_t batch, int64_t length) {
  if (layer == Layer::none) return {};
  const bool residual = layer != Layer::without_residual, silu = layer == Layer::with_activation;
  const bool documents = layer == Layer::within_documents;
  return {weight, {residual, silu}, documents ? short_documents(batch, length) : at::Tensor()};
}

/// The kernel of a layer: each length once.
int64_t kernel_of(Layer layer) {
  return layer == Layer::plain ? 3 : layer == Layer::without_residual ? 2 : 4;
}

TEST_CASE("canon_conv agrees with its reference", "[ops]") {
  at::manual_seed(1);
  for (const Types& types : types_of_passes()) {
    for (const Shape& s : awkward_shapes()) {
      for (const Layer kind : layers) {
        if (kind == Layer::none) continue;
        INFO(types.name << " " << s << "layer " << int(kind));
        const auto run = [&](const auto& operation) {
          return [&](const Tensors& in) {
            const ops::CanonLayer layer = layer_of(kind, in[1], s.batch, s.length);
            return operation(in[0], layer.weight, layer.options, layer.doc_ids);
          };
        };
        REQUIRE(fused_against_reference(types,
                                        run(ops::canon_conv),
                                        run(ops::canon_conv_reference),
                                        {activation({s.batch, s.length, s.channels}),
                                         weight({s.channels, 1, kernel_of(kind)})}) <=
                types.tolerance);
      }
    }
  }
}

TEST_CASE("rms_norm agrees with its reference", "[ops]") {
  at::manual_seed(2);
  for (const Types& types : types_of_passes()) {
    for (const Shape& s : awkward_shapes()) {
      for (const bool round_before_weight : {true, false}) {
        INFO(types.name << " " << s);
        const ops::RmsNormOptions options{1e-5, round_before_weight};
        REQUIRE(
            fused_against_reference(
                types,
                [&](const Tensors& in) { return ops::rms_norm(in[0], in[1], options); },
                [&](const Tensors& in) { return ops::rms_norm_reference(in[0], in[1], options); },
                {activation({s.batch, s.length, s.channels}), weight({s.channels})}) <=
            types.tolerance);
      }
    }
  }
}

TEST_CASE("rms_norm_of_parts agrees with a norm of each part", "[ops]") {
  at::manual_seed(15);
  for (const Types& types : types_of_passes()) {
    for (const Shape& s : awkward_shapes()) {
      for (const bool round_before_weight : {true, false}) {
        INFO(types.name << " " << s);
        const ops::RmsNormOptions options{1e-5, round_before_weight};
        const auto reference = [&](const Tensors& in) {
          const int64_t a = in[1].size(0), b = in[2].size(0);
          const auto parts = at::split_with_sizes(in[0], {a, b, in[0].size(-1) - a - b}, -1);
          return at::cat({ops::rms_norm_reference(parts[0], in[1], options),
                          ops::rms_norm_reference(parts[1], in[2], options),
                          parts[2]},
                         -1);
        };
        REQUIRE(fused_against_reference(types,
                                        [&](const Tensors& in) {
                                          return ops::rms_norm_of_parts(
                                              in[0], in[1], in[2], options);
                                        },
                                        reference,
                                        {activation({s.batch, s.length, 4 * s.channels}),
                                         weight({2 * s.channels}),
                                         weight({s.channels})}) <= types.tolerance);
      }
    }
  }
}

TEST_CASE("swiglu agrees with its reference", "[ops]") {
  at::manual_seed(3);
  for (const Types& types : types_of_passes()) {
    for (const Shape& s : awkward_shapes()) {
      INFO(types.name << " " << s);
      REQUIRE(fused_against_reference(
                  types,
                  [](const Tensors& in) { return ops::swiglu(in[0]); },
                  [](const Tensors& in) { return ops::swiglu_reference(in[0]); },
                  {activation({s.batch, s.length, 2 * s.channels}, 3)}) <= types.tolerance);
    }
  }
}

TEST_CASE("rotary agrees with its reference for both pairings and partial rotation", "[ops]") {
  at::manual_seed(4);
  for (const Types& types : types_of_passes()) {
    for (const int64_t length : {0, 1, 2, 3, 129, 151}) {
      for (const int64_t head_dim : {2, 7, 8, 64}) {
        for (const bool interleaved : {false, true}) {
          for (const bool partial : {false, true}) {
            INFO(types.name << " T " << length << " D " << head_dim << " " << interleaved);
            const int64_t rope_dim = partial ? 2 : head_dim / 2 * 2;
            const auto run = [&](const auto& operation, at::ScalarType type) {
              const ops::RotaryTable table =
                  ops::rotary_table(length + 2, rope_dim, 1e4, interleaved, ints().dtype(type));
              return [=](const Tensors& in) { return operation(in[0], table); };
            };
            REQUIRE(fused_against_reference(types,
                                            run(ops::rotary, types.weights),
                                            run(ops::rotary_reference, at::kDouble),
                                            {activation({2, length, 3, head_dim})}) <=
                    types.tolerance);
          }
        }
      }
    }
  }
}

TEST_CASE("embedding agrees with its reference", "[ops]") {
  at::manual_seed(5);
  for (const Types& types : types_of_products()) {
    for (const Shape& s : awkward_shapes()) {
      for (const int64_t vocabulary : {1, 37}) {
        INFO(types.name << " " << s << "V " << vocabulary);
        const at::Tensor ids = at::randint(0, vocabulary, {s.batch, s.length}, ints());
        REQUIRE(fused_against_reference(
                    types,
                    [&](const Tensors& in) { return ops::embedding(types.matrix(in[0]), ids); },
                    [&](const Tensors& in) { return at::embedding(in[0], ids); },
                    {weight({vocabulary, s.channels})}) <= types.tolerance);
      }
    }
  }
}

TEST_CASE("linear agrees with its reference", "[ops]") {
  at::manual_seed(6);
  for (const Types& types : types_of_products()) {
    for (const Shape& s : awkward_shapes()) {
      for (const int64_t out : {1, 5, 129, 256}) {
        for (const bool adds : {false, true}) {
          INFO(types.name << " " << s << "out " << out << " residual " << adds);
          std::vector<Input> inputs = {activation({s.batch, s.length, s.channels}),
                                       weight({out, s.channels}, 0.1)};
          if (adds) inputs.push_back(activation({s.batch, s.length, out}));
          REQUIRE(fused_against_reference(
                      types,
                      [&](const Tensors& in) {
                        return ops::linear(in[0], types.matrix(in[1]), adds ? in[2] : at::Tensor());
                      },
                      [&](const Tensors& in) {
                        const at::Tensor y = at::linear(in[0], in[1]);
                        return adds ? y + in[2] : y;
                      },
                      inputs) <= types.tolerance);
        }
      }
    }
  }
}

TEST_CASE("norm_linear agrees with its reference with every Canon layer", "[ops]") {
  at::manual_seed(7);
  for (const Types& types : types_of_products()) {
    for (const Shape& s : awkward_shapes()) {
      for (const Layer kind : layers) {
        // The gradient of a single weight is a sum that may cancel.
        const double allowed = types.tolerance * (s.channels == 1 ? 4 : 1);
        INFO(types.name << " " << s << "layer " << int(kind));
        // The stream that comes back is used too, so that its gradient joins.
        const auto run = [&](const auto& operation, const auto& matrix) {
          return [&](const Tensors& in) {
            const ops::CanonLayer layer = layer_of(kind, in[2], s.batch, s.length);
            const ops::NormLinear y = operation(in[0], in[1], {}, layer, matrix(in[3]));
            return at::cat({y.projection, y.residual}, -1);
          };
        };
        const auto typed = [&](const at::Tensor& w) { return types.matrix(w); };
        const auto plain = [](const at::Tensor& w) { return ops::WeightMatrix(w); };
        REQUIRE(fused_against_reference(types,
                                        run(ops::norm_linear, typed),
                                        run(ops::norm_linear_reference, plain),
                                        {activation({s.batch, s.length, s.channels}),
                                         weight({s.channels}),
                                         weight({s.channels, 1, kernel_of(kind)}, 0.5),
                                         weight({16, s.channels}, 0.1)}) <= allowed);
      }
    }
  }
}

TEST_CASE("swiglu_linear agrees with its reference with every Canon layer", "[ops]") {
  at::manual_seed(8);
  for (const Types& types : types_of_products()) {
    for (const Shape& s : awkward_shapes()) {
      for (const Layer kind : layers) {
        INFO(types.name << " " << s << "layer " << int(kind));
        const bool adds = kind != Layer::plain;
        const auto run = [&](const auto& operation, const auto& matrix) {
          return [&](const Tensors& in) {
            const ops::CanonLayer layer = layer_of(kind, in[1], s.batch, s.length);
            return operation(in[0], layer, matrix(in[2]), adds ? in[3] : at::Tensor());
          };
        };
        const auto typed = [&](const at::Tensor& w) { return types.matrix(w); };
        const auto plain = [](const at::Tensor& w) { return ops::WeightMatrix(w); };
        const auto fused = [](const auto&... in) { return ops::swiglu_linear(in...); };
        REQUIRE(fused_against_reference(types,
                                        run(fused, typed),
                                        run(ops::swiglu_linear_reference, plain),
                                        {activation({s.batch, s.length, 2 * s.channels}),
                                         weight({2 * s.channels, 1, kernel_of(kind)}, 0.5),
                                         weight({8, s.channels}, 0.1),
                                         activation({s.batch, s.length, 8})}) <= types.tolerance);
      }
    }
  }
}

struct HeadShape {
  int64_t batch, length;
  ops::HeadLayout layout;
  int64_t rope_dim;
};

std::vector<HeadShape> awkward_heads() {
  std::vector<HeadShape> shapes = {{0, 9, {4, 2, 8}, 8},
                                   {1, 151, {2, 1, 128}, 64},
                                   {1, 70, {1, 1, 257}, 2},
                                   {2, 300, {2, 2, 64}, 64}};
  for (const int64_t length : {1, 2, 3, 63, 64, 65, 129, 151}) {
    shapes.push_back({2, length, {4, 4, 8}, 8});
    shapes.push_back({2, length, {4, 1, 16}, 0});
    shapes.push_back({1, length, {6, 2, 5}, 4});
    shapes.push_back({3, length, {1, 1, 1}, 0});
  }
  return shapes;
}

std::ostream& operator<<(std::ostream& out, const HeadShape& s) {
  return out << "B " << s.batch << " T " << s.length << " H " << s.layout.heads << " G "
             << s.layout.kv_heads << " D " << s.layout.head_dim << " ";
}

/// Rows of documents of random lengths around `mean`, numbered from 0 on.
at::Tensor random_documents(int64_t rows, int64_t length, int64_t mean) {
  return at::randint(0, mean, {rows, length}, ints()).eq(0).cumsum(1).to(at::kInt);
}

/// The division of a batch x [B, T, …] into documents, and a window over it; 0: none.
ops::Documents visible(const at::Tensor& docs, int64_t window, const at::Tensor& x) {
  const ops::Documents divided = ops::divide_documents(docs);
  return window > 0 ? ops::within_window(divided, window, x) : divided;
}

TEST_CASE("causal_attention agrees with its reference within documents, a window, both or neither",
          "[ops]") {
  at::manual_seed(9);
  for (const Types& types : types_of_products()) {
    for (const HeadShape& s : awkward_heads()) {
      for (const auto& [mean, window] : std::vector<std::pair<int64_t, int64_t>>{
               {0, 0}, {1, 0}, {3, 0}, {50, 0}, {0, 1}, {0, 3}, {0, 70}, {50, 7}}) {
        INFO(types.name << " " << s << "documents of about " << mean << ", window " << window);
        const at::Tensor docs = mean ? random_documents(s.batch, s.length, mean) : at::Tensor();
        const int64_t tokens = window;
        const auto heads = [&](int64_t count) {
          return activation({s.batch, s.length, count, s.layout.head_dim});
        };
        REQUIRE(fused_against_reference(
                    types,
                    [&](const Tensors& in) {
                      return ops::causal_attention(
                          in[0], in[1], in[2], visible(docs, tokens, in[0]), types.products);
                    },
                    [&](const Tensors& in) {
                      return ops::causal_attention_reference(in[0], in[1], in[2], docs, tokens);
                    },
                    {heads(s.layout.heads), heads(s.layout.kv_heads), heads(s.layout.kv_heads)}) <=
                types.tolerance);
      }
    }
  }
}

TEST_CASE("self_attention agrees with its reference with every Canon layer", "[ops]") {
  at::manual_seed(10);
  for (const Types& types : types_of_products()) {
    for (const HeadShape& s : awkward_heads()) {
      for (const Layer kind : layers) {
        const int64_t window = int(kind) % 2 == 0 ? 0 : 5;
        INFO(types.name << " " << s << "layer " << int(kind) << ", window " << window);
        const auto table = [&](at::ScalarType type) {
          if (s.rope_dim == 0) return ops::RotaryTable{};
          const bool interleaved = kind == Layer::plain;
          return ops::rotary_table(s.length + 3, s.rope_dim, 1e4, interleaved, ints().dtype(type));
        };
        const auto layer = [&](const at::Tensor& w) {
          return layer_of(kind, w, s.batch, s.length);
        };
        REQUIRE(fused_against_reference(
                    types,
                    [&](const Tensors& in) {
                      const ops::CanonLayer canon = layer(in[1]);
                      return ops::self_attention(in[0],
                                                 {canon, table(types.weights), s.layout, {}},
                                                 visible(canon.doc_ids, window, in[0]),
                                                 types.products);
                    },
                    [&](const Tensors& in) {
                      const ops::CanonLayer canon = layer(in[1]);
                      return ops::self_attention_reference(
                          in[0], {canon, table(at::kDouble), s.layout, {}}, canon.doc_ids, window);
                    },
                    {activation({s.batch, s.length, s.layout.width()}),
                     weight({s.layout.width(), 1, kernel_of(kind)}, 0.5)}) <= types.tolerance);
      }
    }
  }
}

TEST_CASE("self_attention agrees with its reference with normalised heads", "[ops]") {
  at::manual_seed(14);
  std::vector<HeadShape> shapes;
  for (const int64_t length : {1, 2, 3, 64, 65, 151}) {
    for (const int64_t head_dim : {8, 16, 24, 32, 64, 128, 256}) {
      shapes.push_back({2, length, {3, 1, head_dim}, head_dim});
    }
    shapes.push_back({1, length, {2, 2, 64}, 16});
    shapes.push_back({3, length, {2, 2, 16}, 0});
  }
  for (const Types& types : types_of_products()) {
    for (const HeadShape& s : shapes) {
      for (const Layer kind : {Layer::none, Layer::plain, Layer::within_documents}) {
        for (const bool round_before_weight : {false, true}) {
          // The backward pass divides by the size of a head, which may be small where it has few
          // channels.
          const double allowed = types.tolerance * (types.activations == at::kBFloat16 ? 2 : 1);
          INFO(types.name << " " << s << "layer " << int(kind) << " " << round_before_weight);
          const auto table = [&](at::ScalarType type) {
            if (s.rope_dim == 0) return ops::RotaryTable{};
            return ops::rotary_table(
                s.length, s.rope_dim, 1e4, round_before_weight, ints().dtype(type));
          };
          const at::Tensor docs =
              kind == Layer::within_documents ? short_documents(s.batch, s.length) : at::Tensor();
          const ops::Documents divided = ops::divide_documents(docs);
          const ops::RmsNormOptions options{1e-5, round_before_weight};
          REQUIRE(fused_against_reference(
                      types,
                      [&](const Tensors& in) {
                        return ops::self_attention(in[0],
                                                   {layer_of(kind, in[1], s.batch, s.length),
                                                    table(types.weights),
                                                    s.layout,
                                                    {in[2], in[3], options}},
                                                   divided,
                                                   types.products);
                      },
                      [&](const Tensors& in) {
                        return ops::self_attention_reference(
                            in[0],
                            {layer_of(kind, in[1], s.batch, s.length),
                             table(at::kDouble),
                             s.layout,
                             {in[2], in[3], options}},
                            docs);
                      },
                      {activation({s.batch, s.length, s.layout.width()}),
                       weight({s.layout.width(), 1, kernel_of(kind)}, 0.5),
                       weight({s.layout.head_dim}),
                       weight({s.layout.head_dim})}) <= allowed);
        }
      }
    }
  }
}

/// Targets of which some are not scored, where there are enough.
at::Tensor some_targets(int64_t rows, int64_t vocabulary) {
  at::Tensor targets = at::randint(0, vocabulary, {rows}, ints());
  if (rows > 30) targets.narrow(0, 5, 20).fill_(ops::ignored_target);
  return targets;
}

TEST_CASE("the summed negative log likelihood is the loss times the scored targets", "[ops]") {
  at::manual_seed(11);
  for (const Types& types : types_of_passes()) {
    for (const int64_t rows : {1, 2, 3, 129, 151}) {
      for (const int64_t vocabulary : {1, 2, 3, 129, 151, 4097}) {
        INFO(types.name << " rows " << rows << " V " << vocabulary);
        const at::Tensor targets = some_targets(rows, vocabulary);
        const at::Tensor logits = activation({rows, vocabulary}, 3).value.to(types.activations);
        const double sum =
            ops::negative_log_likelihoods(logits, targets).sum(at::kDouble).item<double>();
        const double scored = targets.ne(ops::ignored_target).sum().item<double>();
        const double expected =
            scored * ops::cross_entropy_reference(logits.to(at::kDouble), targets).item<double>();
        REQUIRE(std::abs(sum - expected) <= types.tolerance * std::max(1.0, expected));
      }
    }
  }
}

TEST_CASE("linear_cross_entropy agrees with its reference for every z-loss and over chunks",
          "[ops]") {
  at::manual_seed(12);
  for (const Types& types : types_of_products()) {
    for (const ZLoss z_loss : {ZLoss::none, ZLoss::palm, ZLoss::lingua_code}) {
      for (const int64_t rows : {1, 2, 3, 129, 151}) {
        for (const int64_t vocabulary : {1, 2, 3, 129, 20000}) {  // the last in chunks of 64 rows
          for (const int64_t channels : {3, 16}) {
            INFO(types.name << " rows " << rows << " V " << vocabulary << " " << int(z_loss));
            const at::Tensor targets = some_targets(rows, vocabulary);
            const ops::CrossEntropyOptions options{z_loss, 0.01};
            REQUIRE(fused_against_reference(
                        types,
                        [&](const Tensors& in) {
                          return ops::linear_cross_entropy(
                              in[0], types.matrix(in[1]), targets, options);
                        },
                        [&](const Tensors& in) {
                          return ops::linear_cross_entropy_reference(
                              in[0], in[1], targets, options);
                        },
                        {activation({rows, channels}), weight({vocabulary, channels})}) <=
                    types.tolerance);
          }
        }
      }
    }
  }
}

TEST_CASE("linear_cross_entropy_losses are those of whole logits, over chunks", "[ops]") {
  at::manual_seed(14);
  for (const Types& types : types_of_products()) {
    for (const int64_t rows : {0, 1, 2, 3, 129, 151}) {
      for (const int64_t vocabulary : {1, 2, 3, 129, 20000}) {
        for (const int64_t channels : {3, 16}) {
          INFO(types.name << " rows " << rows << " V " << vocabulary << " C " << channels);
          const at::Tensor targets = some_targets(rows, vocabulary);
          const at::Tensor x = activation({rows, channels}).value;
          const at::Tensor w = weight({vocabulary, channels}).value;
          const at::Tensor losses = ops::linear_cross_entropy_losses(
              x.to(types.activations), types.matrix(w.to(types.weights)), targets);
          REQUIRE(losses.sizes() == targets.sizes());
          REQUIRE(losses.masked_select(targets.eq(ops::ignored_target)).ne(0).sum().item<int>() ==
                  0);
          const at::Tensor sum = losses.sum(at::kDouble);
          const double expected = ops::negative_log_likelihoods(at::linear(x, w), targets)
                                      .sum(at::kDouble)
                                      .item<double>();
          const double tolerance = types.products == at::kDouble ? 1e-12 : types.tolerance;
          // No loss is negative: of a single entry the roundings of all rows add up.
          const double scale = std::max({1.0, expected, 0.1 * double(rows)});
          REQUIRE(std::abs(sum.item<double>() - expected) <= tolerance * scale);
        }
      }
    }
  }
}

TEST_CASE("adamw agrees with its reference over several steps", "[ops]") {
  at::manual_seed(13);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    const at::TensorOptions options = ints().dtype(type);
    for (const int64_t size : {0, 1, 2, 3, 129, 151, 4097, 100003}) {
      INFO(at::toString(type) << " " << size);
      at::Tensor p = at::randn({size}, options), m = at::zeros_like(p), v = at::zeros_like(p);
      at::Tensor p2 = p.clone(), m2 = m.clone(), v2 = v.clone();
      for (int64_t step = 1; step <= 5; ++step) {
        const at::Tensor g = at::randn({size}, options);
        const ops::AdamWStep adamw{1e-2, 0.9, 0.95, 1e-8, 0.1, step};
        ops::adamw_(p, g, m, v, adamw);
        ops::adamw_reference_(p2, g, m2, v2, adamw);
      }
      if (size == 0) continue;
      for (const auto& [a, b] : {std::pair(p, p2), {m, m2}, {v, v2}}) {
        REQUIRE((a - b).abs().max().item<double>() <= (type == at::kDouble ? 1e-12 : 1e-5));
      }
    }
  }
}

}  // namespace
}  // namespace forge::tests
