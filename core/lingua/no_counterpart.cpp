#include "core/lingua/no_counterpart.h"

#include <algorithm>

namespace forge::lingua {

const std::vector<NoCounterpart>& no_counterparts() {
  static const char* const one_device = "forge trains on one device";
  static const char* const memory = "about memory and speed, not about the result";
  static const char* const host = "about the machines";
  static const std::vector<NoCounterpart> list = {
      {"dump_dir", "forge's runs lie in the workspace's folder of runs"},
      {"gc_collect_freq", "about Python"},
      {"probe_freq", "forge has no probe"},
      {"async_eval_gpus", "forge evaluates in place"},
      {"eval", "forge evaluates the loss on held-out text"},
      {"env", host},
      {"profiling", "forge bench measures"},
      {"optim.annealing_step", "nothing reads it"},
      {"model.max_seqlen", "lingua replaces it by data.seq_len"},
      {"data.load_async", memory},
      {"data.prefetch_size", "forge shuffles all rows of an epoch, not those of a buffer"},
      {"distributed.fsdp_type", one_device},
      {"distributed.compile", "forge's model is not compiled"},
      {"distributed.matmul_allow_tf32", "forge's products are done in train.precision"},
      {"distributed.allow_bf16_reduced_precision_reduction",
       "forge's products are done in train.precision"},
      {"distributed.selective_activation_checkpointing", memory},
      {"distributed.float8_recipe", "forge computes in train.precision"},
      {"distributed.float8_filter", "forge computes in train.precision"},
      {"distributed.detect_anomaly", host},
      {"distributed.compile_cache_size_limit", "forge's model is not compiled"},
      {"distributed.spawn_method", host},
      {"checkpoint.path", "checkpoints lie in a run's folder"},
      {"checkpoint.init_ckpt_path", "train.initial_weights names a run or a model folder"},
      {"checkpoint.continue_training_from_init", "train.initial_weights gives weights alone"},
      {"checkpoint.dump.keep", "train.keep_checkpoints says how many are kept"},
      {"checkpoint.eval.keep", "train.keep_best keeps the best one"},
      {"logging.acc_freq", "forge logs after whole steps"},
      {"logging.wandb", "forge's own store has all numbers"}};
  return list;
}

const NoCounterpart* find_no_counterpart(const std::string& path) {
  const std::vector<NoCounterpart>& list = no_counterparts();
  const auto found = std::find_if(
      list.begin(), list.end(), [&](const NoCounterpart& known) { return known.path == path; });
  return found == list.end() ? nullptr : &*found;
}

}  // namespace forge::lingua
