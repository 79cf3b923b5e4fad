#include "backends/libtorch/worker/checkpoint.h"

#include "backends/libtorch/worker/weights.h"
#include "core/weights/checkpoint.h"

namespace forge::worker {

namespace {

constexpr int kept_checkpoints = 2;

nlohmann::json to_json(const Progress& p) {
  return {{"window_steps", p.window_steps},
          {"window_loss", p.window_loss},
          {"window_norm", p.window_norm},
          {"last_window_loss", p.last_window_loss},
          {"timed_steps", p.timed_steps},
          {"timed_seconds", p.timed_seconds},
          {"peak_memory_bytes", p.peak_memory_bytes},
          {"peak_resident_bytes", p.peak_resident_bytes}};
}

Progress from_state(const weights::CheckpointState& state) {
  Progress p;
  p.step = state.step;
  p.elapsed_seconds = state.elapsed_seconds;
  state.extra.at("window_steps").get_to(p.window_steps);
  state.extra.at("window_loss").get_to(p.window_loss);
  state.extra.at("window_norm").get_to(p.window_norm);
  state.extra.at("last_window_loss").get_to(p.last_window_loss);
  state.extra.at("timed_steps").get_to(p.timed_steps);
  state.extra.at("timed_seconds").get_to(p.timed_seconds);
  state.extra.at("peak_memory_bytes").get_to(p.peak_memory_bytes);
  state.extra.at("peak_resident_bytes").get_to(p.peak_resident_bytes);
  return p;
}

}  // namespace

protocol::CheckpointSaved save_checkpoint(const std::string& run_dir,
                                          const Progress& progress,
                                          const LlamaCanon& model,
                                          const Optimizer& optimizer) {
  weights::CheckpointState state;
  state.step = progress.step;
  state.elapsed_seconds = progress.elapsed_seconds;
  state.extra = to_json(progress);
  std::vector<at::Tensor> owners;
  const auto weights = views_of(model.named_weights(), owners);
  const auto moments = views_of(optimizer.named_state(), owners);
  const std::filesystem::path folder = std::filesystem::path(run_dir) / "checkpoints";
  protocol::CheckpointSaved saved;
  saved.step = progress.step;
  const std::filesystem::path path =
      weights::write_checkpoint(folder, state, weights, moments, &saved.bytes);
  saved.path = path.lexically_relative(run_dir).string();
  weights::prune_checkpoints(folder, kept_checkpoints);
  return saved;
}

Progress load_checkpoint(const std::string& folder, LlamaCanon& model, const Optimizer& optimizer) {
  const weights::CheckpointState state = weights::read_checkpoint_state(folder);
  const std::filesystem::path path = folder;
  load_tensors(weights::SafetensorsFile(path / "weights.safetensors"), model.named_weights());
  load_tensors(weights::SafetensorsFile(path / "optimizer.safetensors"), optimizer.named_state());
  model.round_matrices();
  return from_state(state);
}

}  // namespace forge::worker
