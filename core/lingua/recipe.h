#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/yaml/yaml.h"

/// A training recipe of Meta Lingua as plain structs, with lingua's own names and defaults: those
/// of its dataclasses, and of the version of it that LlamaCanon was trained with ("Physics of
/// Language Models: Part 4.1"), which adds qk_norm, z_loss, rope_dim, hidden_dim and canon_*. What
/// describes the machines and not the training is in core/lingua/recipe_fields.h alone.
namespace forge::lingua {

struct Optim {
  double lr = 3e-4;
  double weight_decay = 0.1;
  double epsilon = 1e-8;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double clip = 1.0;
  std::string scheduler = "cosine";
  int64_t warmup = 2000;
  double lr_min_ratio = 0.1;
  double cycle_length = 1.0;
  double cosine_theta = 1.0;
  double decay_fraction = 0.1;
  double exp_factor = 0.5;
};

struct Model {
  int dim = 512;
  int n_layers = 8;
  std::optional<int> head_dim;
  std::optional<int> n_heads;
  std::optional<int> n_kv_heads;
  std::optional<int> hidden_dim;
  std::optional<double> ffn_dim_multiplier;
  int multiple_of = 256;
  double norm_eps = 1e-5;
  double rope_theta = 10000.0;
  std::optional<int> rope_dim;
  std::optional<double> init_base_std;
  std::string init_std_factor = "disabled";
  bool qk_norm = false;
  bool z_loss = false;
  std::optional<std::string> canon_set;
  bool canon_bias = false;
  bool canon_activation = false;
  int canon_kernel = 4;
  bool canon_residual = true;
  int vocab_size = -1;
  bool weight_tying = false;
  std::string attn_impl = "sdpa";
  std::optional<int> sliding_window;
  uint64_t seed = 42;
  // Of linear models alone.
  std::optional<std::string> model_name;  ///< GLA5, GDN2 or Mamba2; none: a Llama
  std::optional<std::string> mlp_type;
  std::optional<int> mamba_ssm;
  bool zeyuan_layernorm = false;
};

struct Tokenizer {
  std::string name = "bytes";
  std::optional<std::string> path;
};

struct Data {
  std::optional<std::string> root_dir;
  std::map<std::string, double> sources;  ///< folder below root_dir -> weight of its documents
  int batch_size = 2;                     ///< rows of a GPU in a micro step
  int seq_len = 2048;
  int n_views = 2;
  std::optional<uint64_t> seed;  ///< none: the recipe's
  bool add_bos = true;
  bool add_eos = true;
  Tokenizer tokenizer;
};

struct Distributed {
  int dp_shard = 1;
  int dp_replicate = 1;
  int tp_size = 1;
  std::string model_dtype = "bf16";
};

struct SaveEvery {
  int64_t every = 1000;  ///< steps
};

struct Checkpoint {
  SaveEvery dump;
  SaveEvery eval;
};

struct Logging {
  int64_t freq = 10;  ///< steps
};

struct Recipe {
  std::string name;
  uint64_t seed = 42;
  int64_t steps = 1000;
  int grad_acc_steps = 1;
  Data data;
  Optim optim;
  Model model;
  Distributed distributed;
  Checkpoint checkpoint;
  Logging logging;
};

/// A key of the file that no key of forge's corresponds to.
struct UnsupportedKey {
  std::string path;
  std::string value;  ///< on one line, "…" for a whole section
  std::string reason;
};

/// What a recipe's file says.
struct ReadRecipe {
  Recipe recipe;
  std::map<std::string, SourceSpan> places;  ///< of the value of each key that the file gives
  std::vector<UnsupportedKey> unsupported;   ///< in the order of the file
  std::vector<Error> unknown;                ///< one for each key that lingua does not have
  std::string file_name;                     ///< without its folder
  SourceSpan document;

  /// Where the key's value stands, else where the document begins.
  SourceSpan place(const std::string& path) const;
};

/// Reads a recipe. Throws Error at a value of a wrong type or out of its limits.
ReadRecipe read_recipe(const yaml::Node& root);
ReadRecipe read_recipe_file(const std::filesystem::path& file);

}  // namespace forge::lingua
