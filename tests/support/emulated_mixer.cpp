// Compiled optimised, unlike other tests, and without Torch.
#include "tests/support/emulated_mixer.h"

#include "tests/support/cuda_emulation.h"

#include "backends/libtorch/ops/gated_norm/cuda.cuh"
#include "backends/libtorch/ops/log_decay/cuda.cuh"
#include "backends/libtorch/ops/short_conv/cuda.cuh"

namespace forge::tests {
namespace {

namespace kernels = ops::cuda;

struct EmulatedStart {
  int64_t blocks;

  template <class Kernel>
  int64_t resident(Kernel, int) const {
    return blocks;
  }
  template <class... Parameters, class... Arguments>
  void operator()(void (*kernel)(Parameters...),
                  unsigned x,
                  unsigned y,
                  int threads,
                  const Arguments&... arguments) const {
    cuda_emulation::launch(kernel, {x, y, 1}, threads, 0, arguments...);
  }
};

EmulatedStart start_of(const EmulatedMixer& call) {
  cuda_emulation::run_backwards = call.backwards;
  return {call.resident};
}

/// Rows of sums that begin as what is no number.
class Sums {
 public:
  explicit Sums(int64_t columns) : columns_(columns) {}
  kernels::AllocateRows allocate() {
    return [this](int64_t rows) {
      rows_.assign(rows * columns_, NAN);
      return rows_.data();
    };
  }
  std::vector<float> total() const {
    std::vector<float> sums(columns_, 0);
    for (size_t i = 0; i < rows_.size(); ++i) sums[i % columns_] += rows_[i];
    return sums;
  }

 private:
  int64_t columns_;
  std::vector<float> rows_;
};

/// Calls run with the type of activations.
template <class Run>
auto with_type(const EmulatedMixer& call, const Run& run) {
  return call.narrow ? run(kernels::bfloat16{}) : run(float{});
}

template <class T>
kernels::PartPlaces<T> places_of(const EmulatedShortConv& call, bool mixed) {
  kernels::PartPlaces<T> places{};
  int first = 0;
  for (const EmulatedShortConv::Part& part : call.parts) {
    if (part.is_mixed == mixed)
      places.place[places.count++] = {first,
                                      static_cast<int>(part.channels),
                                      static_cast<int>(part.head_width),
                                      static_cast<T*>(part.data),
                                      0,
                                      0};
    first += static_cast<int>(part.channels);
  }
  return places;
}

template <class T>
kernels::ShortConvPass<T> pass_of(const EmulatedShortConv& call) {
  const kernels::PartPlaces<T> mixed = places_of<T>(call, true);
  int64_t channels = 0;
  for (int i = 0; i < mixed.count; ++i) channels += mixed.place[i].channels;
  return {{call.batch, call.length, channels, nullptr},
          call.stride,
          mixed.place[0].first,
          call.taps,
          call.silu,
          call.length_eps,
          static_cast<const T*>(call.x),
          call.weights,
          call.bias,
          mixed};
}

template <class T>
kernels::GatedNormPass<T> pass_of(const EmulatedGatedNorm& call) {
  return {call.tokens,
          call.channels,
          static_cast<int>(call.width),
          static_cast<int>(call.head_width),
          call.gate_stride,
          call.gate_first,
          call.eps,
          static_cast<const T*>(call.o),
          static_cast<const T*>(call.gate),
          static_cast<const T*>(call.skip),
          call.weight,
          call.bias,
          call.factor,
          static_cast<T*>(call.y)};
}

template <class T>
kernels::LogDecayPass<T> pass_of(const EmulatedLogDecay& call) {
  return {call.tokens, call.channels, call.normalizer, static_cast<const T*>(call.x), call.bias};
}

template <class T>
kernels::HeadGatesPass<T> pass_of(const EmulatedHeadGates& call) {
  return {call.tokens,
          call.heads,
          call.step_stride,
          call.write_stride,
          static_cast<const T*>(call.step),
          static_cast<const T*>(call.write),
          call.a_log,
          call.step_bias};
}

}  // namespace

bool emulated_short_conv_fits(const EmulatedShortConv& call, int width) {
  return with_type(call, [&](auto type) {
    return kernels::short_conv_fits(pass_of<decltype(type)>(call), width);
  });
}

void run_emulated_forward(const EmulatedShortConv& call) {
  with_type(call, [&](auto type) {
    kernels::run_short_conv_forward(pass_of<decltype(type)>(call), start_of(call));
  });
}

std::vector<float> run_emulated_backward(const EmulatedShortConv& call) {
  return with_type(call, [&](auto type) {
    using T = decltype(type);
    const auto in = pass_of<T>(call);
    Sums sums(in.sequences.channels * (in.taps + (in.bias ? 1 : 0)));
    kernels::run_short_conv_backward(
        in,
        {static_cast<T*>(call.grad_x), call.grad_stride, places_of<T>(call, false)},
        sums.allocate(),
        start_of(call));
    return sums.total();
  });
}

void run_emulated_forward(const EmulatedGatedNorm& call) {
  with_type(call, [&](auto type) {
    kernels::run_gated_norm_forward(pass_of<decltype(type)>(call), start_of(call));
  });
}

std::vector<float> run_emulated_backward(const EmulatedGatedNorm& call) {
  return with_type(call, [&](auto type) {
    using T = decltype(type);
    const int64_t heads = call.skip ? call.channels / call.head_width : 0;
    Sums sums(call.width + (call.bias ? call.channels : 0) + heads);
    kernels::run_gated_norm_backward(
        pass_of<T>(call),
        kernels::GatedNormGradient<T>{static_cast<const T*>(call.grad_y),
                                      call.grad_gate_stride,
                                      static_cast<T*>(call.grad_o),
                                      static_cast<T*>(call.grad_gate),
                                      static_cast<T*>(call.grad_skip)},
        sums.allocate(),
        start_of(call));
    return sums.total();
  });
}

void run_emulated_forward(const EmulatedLogDecay& call) {
  with_type(call, [&](auto type) {
    kernels::run_log_decay_forward(pass_of<decltype(type)>(call), call.log_decay, start_of(call));
  });
}

std::vector<float> run_emulated_backward(const EmulatedLogDecay& call) {
  return with_type(call, [&](auto type) {
    using T = decltype(type);
    Sums sums(call.channels);
    kernels::run_log_decay_backward(pass_of<T>(call),
                                    call.grad_log_decay,
                                    static_cast<T*>(call.grad_x),
                                    sums.allocate(),
                                    start_of(call));
    return sums.total();
  });
}

void run_emulated_forward(const EmulatedHeadGates& call) {
  with_type(call, [&](auto type) {
    kernels::run_head_gates_forward(
        pass_of<decltype(type)>(call), call.log_decay, call.beta, start_of(call));
  });
}

std::vector<float> run_emulated_backward(const EmulatedHeadGates& call) {
  return with_type(call, [&](auto type) {
    using T = decltype(type);
    Sums sums(2 * call.heads);
    kernels::run_head_gates_backward(pass_of<T>(call),
                                     call.grad_log_decay,
                                     call.grad_beta,
                                     static_cast<T*>(call.grad_step),
                                     static_cast<T*>(call.grad_write),
                                     sums.allocate(),
                                     start_of(call));
    return sums.total();
  });
}

}  // namespace forge::tests
