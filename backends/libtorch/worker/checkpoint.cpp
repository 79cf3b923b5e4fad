#include "backends/libtorch/worker/checkpoint.h"

#include <filesystem>

#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

namespace {

nlohmann::json to_json(const TrainingState& p) {
  return {{"window_steps", p.window_steps},
          {"window_loss", p.window_loss},
          {"window_norm", p.window_norm},
          {"last_window_loss", p.last_window_loss},
          {"first_loss", p.first_loss},
          {"timed_steps", p.timed_steps},
          {"timed_seconds", p.timed_seconds},
          {"peak_memory_bytes", p.peak_memory_bytes},
          {"peak_resident_bytes", p.peak_resident_bytes},
          {"rows_at_once", p.micro_batch_size},
          {"evaluation_rows_at_once", p.eval_micro_batch_size}};
}

TrainingState from_state(const weights::CheckpointState& state) {
  TrainingState p;
  p.step = state.step;
  p.elapsed_seconds = state.elapsed_seconds;
  const nlohmann::json& measures = state.extra.at("progress");
  measures.at("window_steps").get_to(p.window_steps);
  measures.at("window_loss").get_to(p.window_loss);
  measures.at("window_norm").get_to(p.window_norm);
  measures.at("last_window_loss").get_to(p.last_window_loss);
  measures.at("first_loss").get_to(p.first_loss);
  measures.at("timed_steps").get_to(p.timed_steps);
  measures.at("timed_seconds").get_to(p.timed_seconds);
  measures.at("peak_memory_bytes").get_to(p.peak_memory_bytes);
  measures.at("peak_resident_bytes").get_to(p.peak_resident_bytes);
  p.micro_batch_size = measures.value("rows_at_once", 0);
  p.eval_micro_batch_size = measures.value("evaluation_rows_at_once", 0);
  return p;
}

/// All random numbers of a run are counted ones: seed and position say which comes next.
nlohmann::json random_state(const config::Experiment& experiment, int64_t step) {
  return {{"generator", "philox4x32-10"},
          {"seed", experiment.seed},
          {"data_seed", experiment.data.seed},
          {"position", step}};
}

int64_t rows_after(const config::Experiment& experiment, int64_t step) {
  return step * experiment.train.batch_size;
}

void check_position(const weights::CheckpointState& state, const config::Experiment& experiment) {
  if (state.rows_served != rows_after(experiment, state.step)) {
    throw Error("step " + std::to_string(state.step) + " stands at row " +
                std::to_string(state.rows_served) + " of the data and not at " +
                std::to_string(rows_after(experiment, state.step)));
  }
  if (state.extra.at("optimizer_step") != state.step) {
    throw Error("the optimizer has done " + state.extra.at("optimizer_step").dump() +
                " steps and the run " + std::to_string(state.step));
  }
  if (state.extra.at("random") != random_state(experiment, state.step))
    throw Error("its random numbers are others: " + state.extra.at("random").dump());
}

}  // namespace

weights::CheckpointState checkpoint_state(const TrainingState& progress,
                                          const config::Experiment& experiment,
                                          const std::string& identity) {
  weights::CheckpointState state;
  state.step = progress.step;
  state.rows_served = rows_after(experiment, progress.step);
  state.elapsed_seconds = progress.elapsed_seconds;
  state.identity = identity;
  state.extra = {{"progress", to_json(progress)},
                 {"optimizer_step", progress.step},
                 {"random", random_state(experiment, progress.step)},
                 {"experiment", config::to_json(experiment)}};
  return state;
}

at::Tensor Snapshot::room_for(const at::Tensor& tensor, Buffer& buffer) {
  if (tensor.is_cuda()) {
    // A device copies into such memory at its full speed.
    if (buffer.bytes != tensor.nbytes())
      buffer.pinned =
          at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()).pinned_memory(true));
    buffer.bytes = tensor.nbytes();
    return buffer.pinned;
  }
  if (buffer.bytes != tensor.nbytes()) buffer.memory.reset(new std::byte[tensor.nbytes()]);
  buffer.bytes = tensor.nbytes();
  return at::from_blob(
      buffer.memory.get(), tensor.sizes(), at::TensorOptions(tensor.scalar_type()));
}

std::map<std::string, weights::TensorView> Snapshot::copy(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  NamedTensors copies;
  for (const auto& [name, tensor] : tensors) {
    at::Tensor room = room_for(tensor, buffers_[name]);
    room.copy_(tensor);
    copies.emplace_back(name, room);
  }
  std::vector<at::Tensor> owners;  // of nothing: the rooms are contiguous and on the CPU
  return views_of(copies, owners);
}

TrainingState load_checkpoint(const std::string& folder,
                              const config::Experiment& experiment,
                              Model& model,
                              const Optimizer& optimizer) {
  const weights::CheckpointState state = weights::read_checkpoint_state(folder);
  const std::filesystem::path path = folder;
  try {
    config::check_resumable(
        config::experiment_from_json(state.extra.at("experiment")), experiment, state.step);
    check_position(state, experiment);
    restore_tensors(weights::SafetensorsFile(path / weights::weights_file), model.named_weights());
    restore_tensors(weights::SafetensorsFile(path / weights::optimizer_file),
                    optimizer.named_state());
    model.round_matrices();
    return from_state(state);
  } catch (const Error& error) {
    throw Error("cannot go on from checkpoint '" + shown_path(folder) + "': " + error.message(),
                {},
                error.hint(),
                error.exit_code());
  } catch (const nlohmann::json::exception& problem) {
    throw Error("cannot go on from checkpoint '" + shown_path(folder) +
                    "': it was not written by this worker's training: " + problem.what(),
                {},
                "its weights can begin a new run: train.initial_weights",
                ExitCode::failed);
  }
}

}  // namespace forge::libtorch
