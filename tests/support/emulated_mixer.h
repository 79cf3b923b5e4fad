#pragma once

#include <cstdint>
#include <vector>

namespace forge::tests {

/// The CUDA kernels around linear attention on the emulated GPU (cuda_emulation.h). Activations are
/// bfloat16, as their bits, where `narrow`, else float. Null: not there, or not asked for. Sums
/// over tokens are those of all blocks, added up.
struct EmulatedMixer {
  bool narrow = true;
  /// Threads change in the other order. Results must not.
  bool backwards = false;
  int64_t resident = 3;  ///< blocks that run at a time
};

/// short_conv over x [B, T, W]. Strides are elements from token to token.
struct EmulatedShortConv : EmulatedMixer {
  struct Part {
    int64_t channels;
    bool is_mixed;
    int64_t head_width;
    void* data;  ///< the result, or its gradient; contiguous
  };
  int64_t batch, length, stride, grad_stride;
  std::vector<Part> parts;
  int taps;
  bool silu;
  float length_eps;
  const void* x;
  const float *weights, *bias;
  void* grad_x;
};
/// Whether vectors of so many channels fit.
bool emulated_short_conv_fits(const EmulatedShortConv& call, int width);
void run_emulated_forward(const EmulatedShortConv& call);
std::vector<float> run_emulated_backward(const EmulatedShortConv& call);

struct EmulatedGatedNorm : EmulatedMixer {
  int64_t tokens, channels, width, head_width, gate_stride, grad_gate_stride;
  bool gate_first;
  float eps;
  const void *o, *gate, *skip;
  const float *weight, *bias, *factor;
  void* y;
  const void* grad_y;
  void *grad_o, *grad_gate, *grad_skip;
};
void run_emulated_forward(const EmulatedGatedNorm& call);
std::vector<float> run_emulated_backward(const EmulatedGatedNorm& call);

struct EmulatedLogDecay : EmulatedMixer {
  int64_t tokens, channels;
  float normalizer;
  const void* x;
  const float* bias;
  float* log_decay;
  const float* grad_log_decay;
  void* grad_x;
};
void run_emulated_forward(const EmulatedLogDecay& call);
std::vector<float> run_emulated_backward(const EmulatedLogDecay& call);

struct EmulatedHeadGates : EmulatedMixer {
  int64_t tokens, heads, step_stride, write_stride;
  const void *step, *write;
  const float *a_log, *step_bias;
  float *log_decay, *beta;
  const float *grad_log_decay, *grad_beta;
  void *grad_step, *grad_write;
};
void run_emulated_forward(const EmulatedHeadGates& call);
std::vector<float> run_emulated_backward(const EmulatedHeadGates& call);

}  // namespace forge::tests
