#include "backends/libtorch/worker/checkpoint.h"

#include <filesystem>

#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

namespace {

/// Calls visit(name in the file, field) for the fields that every checkpoint has.
template <class State, class Visit>
void visit_fields(State& state, const Visit& visit) {
  visit("window_steps", state.window_steps);
  visit("window_loss", state.window_loss);
  visit("window_norm", state.window_norm);
  visit("last_window_loss", state.last_window_loss);
  visit("first_loss", state.first_loss);
  visit("timed_steps", state.timed_steps);
  visit("timed_seconds", state.timed_seconds);
  visit("peak_memory_bytes", state.peak_memory_bytes);
  visit("peak_resident_bytes", state.peak_resident_bytes);
}

nlohmann::json to_json(const TrainingState& progress) {
  nlohmann::json fields = {{"processes", progress.processes},
                           {"micro_batch_size", progress.micro_batch_size},
                           {"evaluation_micro_batch_size", progress.eval_micro_batch_size}};
  visit_fields(progress, [&](const char* name, auto value) { fields[name] = value; });
  return fields;
}

TrainingState from_state(const weights::CheckpointState& state) {
  const nlohmann::json& fields = state.extra.at("progress");
  TrainingState progress;
  progress.step = state.step;
  progress.elapsed_seconds = state.elapsed_seconds;
  visit_fields(progress, [&](const char* name, auto& field) { fields.at(name).get_to(field); });
  progress.processes = fields.value("processes", 1);
  progress.micro_batch_size = fields.value("micro_batch_size", 0);
  progress.eval_micro_batch_size = fields.value("evaluation_micro_batch_size", 0);
  return progress;
}

/// A run's random numbers come from counters: seed and position say which is next.
nlohmann::json random_state(const config::Experiment& experiment, int64_t step) {
  return {{"generator", "philox4x32-10"},
          {"seed", experiment.seed},
          {"order_seed", experiment.order_seed()},
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

at::Tensor Snapshot::memory_for(const at::Tensor& tensor, Buffer& buffer) {
  const at::TensorOptions options(tensor.scalar_type());
  const bool fits = buffer.bytes == tensor.nbytes();
  buffer.bytes = tensor.nbytes();
  if (tensor.is_cuda()) {
    // A device copies into pinned memory at its full speed. A part without numbers has memory, too.
    if (!fits || !buffer.pinned.defined())
      buffer.pinned = at::empty(tensor.sizes(), options.pinned_memory(true));
    return buffer.pinned;
  }
  if (!fits) buffer.memory.reset(new std::byte[tensor.nbytes()]);
  return at::from_blob(buffer.memory.get(), tensor.sizes(), options);
}

std::map<std::string, weights::TensorPart> Snapshot::copy(NamedParts parts) {
  const at::NoGradGuard no_grad;
  for (NamedPart& part : parts)
    part.numbers = memory_for(part.numbers, buffers_[part.name]).copy_(part.numbers);
  std::vector<at::Tensor> owners;  // own no memory: the copies are contiguous and on the CPU
  return views_of(parts, owners);
}

TrainingState load_checkpoint(const std::string& folder,
                              const config::Experiment& experiment,
                              Model& model,
                              const Optimizer& optimizer) {
  const weights::CheckpointState state = weights::read_checkpoint_state(folder);
  const std::filesystem::path path = folder;
  const std::string what = "checkpoint '" + shown_path(folder) + "' cannot be resumed: ";
  try {
    config::check_resumable(
        config::experiment_from_json(state.extra.at("experiment")), experiment, state.step);
    check_position(state, experiment);
    restore_tensors(weights::SafetensorsFile(path / weights::weights_file),
                    whole_parts(model.named_weights()));
    restore_tensors(weights::SafetensorsFile(path / weights::optimizer_file),
                    optimizer.named_state());
    model.round_matrices();
    return from_state(state);
  } catch (const Error& error) {
    throw Error(what + error.message(), error.hint(), error.exit_code());
  } catch (const nlohmann::json::exception&) {  // its message describes the parser
    throw Error(what + "its state is not one that this worker's training has written",
                "its weights can begin a new run: train.initial_weights",
                ExitCode::failed);
  }
}

}  // namespace forge::libtorch
