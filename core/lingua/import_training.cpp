#include "core/lingua/import.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/config/schedule.h"

namespace forge::lingua {

/// How many GPUs see rows of their own: those of a tensor-parallel group share theirs.
int64_t Import::data_parallel_ranks() {
  const Distributed& from = recipe_.distributed;
  const int64_t declared = int64_t{from.dp_replicate} * from.dp_shard * from.tp_size;
  const int64_t gpus = options_.gpus > 0 ? options_.gpus : declared;
  if (gpus > 1 << 20) refuse("distributed.dp_replicate", "makes more than a million GPUs");
  if (gpus % from.tp_size != 0) {
    refuse("distributed.tp_size",
           std::to_string(from.tp_size) + " does not divide the " + std::to_string(gpus) + " GPUs");
  }
  imported_.gpus = static_cast<int>(gpus);
  if (options_.gpus == 0) {
    note("the recipe does not say on how many GPUs it runs: taken for " + std::to_string(gpus) +
         "; --gpus gives another number");
  }
  return gpus / from.tp_size;
}

void Import::take_training() {
  config::TrainConfig& train = experiment_.train;
  const int64_t ranks = data_parallel_ranks();
  const int rows = recipe_.data.batch_size;
  const int micro_steps = recipe_.grad_acc_steps;
  const double all_rows = static_cast<double>(ranks) * rows * micro_steps;
  if (all_rows > 1 << 20) {
    refuse("data.batch_size",
           "makes a step of " + shortest(all_rows) + " rows, of which forge takes " +
               with_thousands(1 << 20));
  }
  std::string remark = std::to_string(imported_.gpus) + " GPUs";
  if (recipe_.distributed.tp_size > 1) {
    remark += " / tp_size " + std::to_string(recipe_.distributed.tp_size);
  }
  state("train.batch_size",
        train.batch_size,
        all_rows,
        remark + " × " + std::to_string(rows) + " rows × " + std::to_string(micro_steps) +
            " micro steps");
  state("train.seq_len", train.seq_len, recipe_.data.seq_len);
  state("train.max_steps", train.max_steps, recipe_.steps, "steps");
  state("train.precision", train.precision, precision());
  state("train.grad_clip", train.grad_clip, recipe_.optim.clip, "clip");
  state("train.log_every", train.log_every, recipe_.logging.freq);
  state("train.eval_every", train.eval_every, recipe_.checkpoint.eval.every);
  state("train.checkpoint_every", train.checkpoint_every, recipe_.checkpoint.dump.every);
  state("train.eval_batch_size", train.eval_batch_size, rows, "rows of a GPU");
  state("train.document_mask", train.document_mask, false);
  if (!recipe_.model.z_loss) return;
  state("train.z_loss.kind",
        train.z_loss.kind,
        config::ZLossKind::lingua_code,
        "z_loss as lingua computes it");
  state("train.z_loss.coefficient", train.z_loss.coefficient, 1e-4);
}

config::Precision Import::precision() const {
  const std::string& dtype = recipe_.distributed.model_dtype;
  if (dtype == "bf16") return config::Precision::bfloat16;
  if (dtype == "fp32") return config::Precision::float32;
  refuse_word("distributed.model_dtype", dtype, {"bf16", "fp32"});
}

void Import::take_optimizer() {
  const Optim& from = recipe_.optim;
  config::OptimizerConfig& optimizer = experiment_.optimizer;
  state("optimizer.type", optimizer.type, "adamw");
  state("optimizer.lr", optimizer.lr, from.lr);
  optimizer.betas = {from.beta1, from.beta2};
  imported_.stated["optimizer.betas"] = "";
  state("optimizer.eps", optimizer.eps, from.epsilon);
  state("optimizer.weight_decay",
        optimizer.weight_decay,
        from.weight_decay,
        "on all parameters, norms and embeddings too");
}

void Import::take_schedule() {
  const Optim& from = recipe_.optim;
  config::ScheduleConfig& schedule = experiment_.schedule;
  static const std::vector<std::string> known = {"constant", "linear", "inv_sqrt", "cosine", "wsd"};
  if (std::find(known.begin(), known.end(), from.scheduler) == known.end()) {
    refuse_word("optim.scheduler", from.scheduler, known);
  }
  const bool is_constant = from.scheduler == "constant";
  const bool is_cosine = from.scheduler == "cosine";
  const bool is_wsd = from.scheduler == "wsd";
  state("schedule.type", schedule.type, from.scheduler);
  state("schedule.warmup_steps",
        schedule.warmup_steps,
        is_constant ? 0 : from.warmup,
        is_constant ? "lingua's constant rate has no warm-up" : "");
  if (is_constant) return;
  state("schedule.lr_min_ratio", schedule.lr_min_ratio, from.lr_min_ratio);
  if (is_cosine || is_wsd) state("schedule.cycle_length", schedule.cycle_length, from.cycle_length);
  if (is_cosine) state("schedule.cosine_theta", schedule.cosine_theta, from.cosine_theta);
  if (is_wsd) state("schedule.decay_fraction", schedule.decay_fraction, from.decay_fraction);
  if (from.scheduler == "inv_sqrt") {
    state("schedule.exp_factor", schedule.exp_factor, from.exp_factor);
  }
}

}  // namespace forge::lingua
