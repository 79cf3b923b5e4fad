#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <iostream>

#include "backends/libtorch/worker/step_graph.h"

namespace forge::worker {
namespace {

constexpr int runs_before_recording = 3;

}  // namespace

struct StepGraph::State {
  bool on_gpu = false;
  bool recordable = true;
  int runs = 0;
  std::unique_ptr<at::cuda::CUDAGraph> graph;
  const void* memory = nullptr;  ///< of what may move

  void begin_anew() {
    if (graph) c10::cuda::getCurrentCUDAStream().synchronize();
    graph.reset();
    recordable = true;
    runs = 0;
  }

  void begin_anew_where_moved(const void* now) {
    if (graph && now != memory) begin_anew();
    memory = now;
  }
};

StepGraph::StepGraph(const at::Device& device) : state_(std::make_unique<State>()) {
  state_->on_gpu = device.is_cuda();
}

StepGraph::~StepGraph() = default;

void StepGraph::begin_anew() { state_->begin_anew(); }

void StepGraph::run(const std::function<void()>& work, const at::Tensor& moving) {
  State& state = *state_;
  state.begin_anew_where_moved(moving.defined() ? moving.data_ptr() : nullptr);
  if (state.graph) return state.graph->replay();
  if (!state.on_gpu || !state.recordable || state.runs++ < runs_before_recording) return work();
  // What the first runs took is given back: the recording takes the same from a pool of its own.
  c10::cuda::getCurrentCUDAStream().synchronize();
  c10::cuda::CUDACachingAllocator::emptyCache();
  auto graph = std::make_unique<at::cuda::CUDAGraph>();
  try {
    graph->capture_begin();
    work();
    graph->capture_end();
  } catch (const c10::Error& error) {
    state.recordable = false;
    try {
      graph->capture_end();
    } catch (const c10::Error&) {
      // The recording is broken already; ending it frees the stream.
    }
    std::cerr << "note: steps are not replayed as a CUDA graph, so they start slower: "
              << error.what_without_backtrace() << "\n";
    graph.reset();  // its memory is needed
    return work();
  }
  state.graph = std::move(graph);
  state.graph->replay();
}

}  // namespace forge::worker
