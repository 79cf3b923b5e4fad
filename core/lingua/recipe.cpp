#include "core/lingua/recipe.h"

#include <map>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/fields.h"
#include "core/config/reader.h"
#include "core/yaml/yaml.h"

/// The keys of lingua's YAML, once: those that forge reads, in the form that core/config/reader.h
/// asks for.
namespace forge::lingua {

template <class Visitor>
void fields(Visitor& visit, Optim& c) {
  using config::above, config::at_least, config::between;
  visit.field("lr", c.lr, "", at_least(0));
  visit.field("weight_decay", c.weight_decay, "", at_least(0));
  visit.field("epsilon", c.epsilon, "", above(0));
  visit.field("beta1", c.beta1, "", between(0, 1));
  visit.field("beta2", c.beta2, "", between(0, 1));
  visit.field("clip", c.clip, "", at_least(0));
  visit.field("scheduler", c.scheduler, "");
  visit.field("warmup", c.warmup, "", at_least(0));
  visit.field("lr_min_ratio", c.lr_min_ratio, "", between(0, 1));
  visit.field("cycle_length", c.cycle_length, "", above(0));
  visit.field("cosine_theta", c.cosine_theta, "", above(0));
  visit.field("decay_fraction", c.decay_fraction, "", between(0, 1));
  visit.field("exp_factor", c.exp_factor, "", above(0));
}

template <class Visitor>
void fields(Visitor& visit, Model& c) {
  using config::above, config::up_to;
  visit.field("dim", c.dim, "", up_to(1 << 18));
  visit.field("n_layers", c.n_layers, "", up_to(1 << 12));
  visit.field("head_dim", c.head_dim, "", up_to(1 << 14));
  visit.field("n_heads", c.n_heads, "", up_to(1 << 12));
  visit.field("n_kv_heads", c.n_kv_heads, "", up_to(1 << 12));
  visit.field("hidden_dim", c.hidden_dim, "", up_to(1 << 20));
  visit.field("ffn_dim_multiplier", c.ffn_dim_multiplier, "", above(0));
  visit.field("multiple_of", c.multiple_of, "", up_to(1 << 20));
  visit.field("norm_eps", c.norm_eps, "", above(0));
  visit.field("rope_theta", c.rope_theta, "", above(0));
  visit.field("rope_dim", c.rope_dim, "");
  visit.field("init_base_std", c.init_base_std, "", above(0));
  visit.field("init_std_factor", c.init_std_factor, "");
  visit.field("qk_norm", c.qk_norm, "");
  visit.field("z_loss", c.z_loss, "");
  visit.field("canon_set", c.canon_set, "");
  visit.field("canon_bias", c.canon_bias, "");
  visit.field("canon_activation", c.canon_activation, "");
  visit.field("canon_kernel", c.canon_kernel, "");
  visit.field("canon_residual", c.canon_residual, "");
  visit.field("vocab_size", c.vocab_size, "", config::between(-1, 1 << 24));
  visit.field("weight_tying", c.weight_tying, "");
  visit.field("attn_impl", c.attn_impl, "");
  visit.field("sliding_window", c.sliding_window, "");
  visit.field("seed", c.seed, "");
  visit.field("model_name", c.model_name, "");
  visit.field("mlp_type", c.mlp_type, "");
  visit.field("mamba_ssm", c.mamba_ssm, "", up_to(1 << 14));
  visit.field("zeyuan_layernorm", c.zeyuan_layernorm, "");
}

template <class Visitor>
void fields(Visitor& visit, Tokenizer& c) {
  visit.field("name", c.name, "");
  visit.field("path", c.path, "");
}

template <class Visitor>
void fields(Visitor& visit, Data& c) {
  visit.field("root_dir", c.root_dir, "");
  visit.field("sources", c.sources, "", config::at_least(0));
  visit.field("batch_size", c.batch_size, "", config::up_to(1 << 20));
  visit.field("seq_len", c.seq_len, "", config::up_to(1 << 24));
  visit.field("n_views", c.n_views, "");
  visit.field("seed", c.seed, "");
  visit.field("add_bos", c.add_bos, "");
  visit.field("add_eos", c.add_eos, "");
  visit.section("tokenizer", c.tokenizer, "");
}

template <class Visitor>
void fields(Visitor& visit, Distributed& c) {
  visit.field("dp_shard", c.dp_shard, "", config::up_to(1 << 20));
  visit.field("dp_replicate", c.dp_replicate, "", config::up_to(1 << 20));
  visit.field("tp_size", c.tp_size, "", config::up_to(1 << 20));
  visit.field("model_dtype", c.model_dtype, "");
}

template <class Visitor>
void fields(Visitor& visit, SaveEvery& c) {
  visit.field("every", c.every, "", config::at_least(0));
}

template <class Visitor>
void fields(Visitor& visit, Checkpoint& c) {
  visit.section("dump", c.dump, "");
  visit.section("eval", c.eval, "");
}

template <class Visitor>
void fields(Visitor& visit, Logging& c) {
  visit.field("freq", c.freq, "", config::at_least(1));
}

template <class Visitor>
void fields(Visitor& visit, Recipe& c) {
  visit.field("name", c.name, "");
  visit.field("seed", c.seed, "");
  visit.field("steps", c.steps, "", config::at_least(1));
  visit.field("grad_acc_steps", c.grad_acc_steps, "", config::up_to(1 << 20));
  visit.section("data", c.data, "");
  visit.section("optim", c.optim, "");
  visit.section("model", c.model, "");
  visit.section("distributed", c.distributed, "");
  visit.section("checkpoint", c.checkpoint, "");
  visit.section("logging", c.logging, "");
}

namespace {

/// Keys of lingua's that no key of forge's corresponds to, of a key or of a whole section, with the
/// reason.
const std::map<std::string, std::string>& no_counterparts() {
  static const char* const one_device = "forge keeps the whole model on each device";
  static const char* const memory = "about memory and speed, not about the result";
  static const char* const host = "about the machines";
  static const std::map<std::string, std::string> list = {
      {"dump_dir", "forge's runs lie in the workspace's folder of runs"},
      {"gc_collect_freq", "about Python"},
      {"probe_freq", "forge has no probe"},
      {"async_eval_gpus", "forge evaluates in place"},
      {"eval", "forge evaluates the loss on held-out text"},
      {"env", host},
      {"profiling", "forge bench measures"},
      {"optim.annealing_step", "nothing reads it"},
      {"model.max_seqlen", "lingua replaces it by data.seq_len"},
      {"model.zeyuan_linearT", "nothing reads it"},
      {"model.zeyuan_alternate", "nothing reads it"},
      {"model.zeyuan_double", "nothing reads it"},
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

using config::Problem;
using yaml::Entry;
using yaml::Node;

std::string shown(const Node& value) { return value.is_scalar() ? value.text.substr(0, 80) : "…"; }

/// Every key of lingua's, with its section: what a misplaced or misspelt one may have meant.
struct PathCollector {
  std::vector<std::string>& paths;
  std::string above = "";

  template <class T>
  void field(const char* key, T&, const char*, config::Limits = {}) {
    paths.push_back(above + key);
  }
  template <class T>
  void section(const char* key, T& value, const char*, config::Limits = {}) {
    PathCollector inner{paths, above + key + "."};
    fields(inner, value);
  }
};

std::vector<std::string> all_paths() {
  std::vector<std::string> paths;
  PathCollector collector{paths};
  Recipe recipe;
  fields(collector, recipe);
  for (const auto& [path, reason] : no_counterparts()) paths.push_back(path);
  return paths;
}

/// Takes out the keys without a counterpart, which may hold anything. No section of lingua's lies
/// deeper than `levels`.
std::shared_ptr<Node> split_unsupported(const Node& section,
                                        const std::string& above,
                                        std::vector<UnsupportedKey>& unsupported,
                                        int levels) {
  auto kept = std::make_shared<Node>(section);
  kept->entries.clear();
  for (Entry entry : section.entries) {
    const std::string path = above + entry.key;
    const auto known = no_counterparts().find(path);
    if (known != no_counterparts().end()) {
      if (!entry.value->is_null())
        unsupported.push_back({path, shown(*entry.value), known->second});
      continue;
    }
    if (entry.value->is_mapping() && levels > 0) {
      entry.value = split_unsupported(*entry.value, path + ".", unsupported, levels - 1);
    }
    kept->entries.push_back(std::move(entry));
  }
  return kept;
}

}  // namespace

SourceSpan ReadRecipe::place(const std::string& path) const {
  const auto found = places.find(path);
  return found == places.end() ? document : found->second;
}

ReadRecipe read_recipe(const Node& root) {
  if (!root.is_mapping()) {
    throw Error("a recipe is a mapping of keys, not " + yaml::describe_kind(root), root.origin);
  }
  ReadRecipe read;
  read.document = root.origin;
  const std::shared_ptr<Node> kept = split_unsupported(root, "", read.unsupported, 2);
  const std::vector<std::string> paths = all_paths();
  config::ReadOptions options;
  options.plain_is_text = true;  // OmegaConf makes text of a plain `name: 1`
  options.elsewhere = &paths;
  options.on_leaf = [&](const std::string& path, const Entry& entry) {
    read.places[path] = entry.value->origin;
  };
  options.on_problem = [&](const Problem& problem) {
    if (problem.kind != Problem::Kind::unknown_key) throw problem.error;
    read.unknown.push_back(problem.error);
  };
  config::read_into(*kept, read.recipe, options);
  return read;
}

ReadRecipe read_recipe_file(const fs::path& file) {
  ReadRecipe read = read_recipe(*yaml::parse_file(file.string()));
  read.file_name = file.filename().string();
  return read;
}

}  // namespace forge::lingua
