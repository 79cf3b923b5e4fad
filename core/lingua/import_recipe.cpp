#include "core/lingua/import_recipe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/config/fields.h"
#include "core/config/schedule.h"
#include "core/project/origins.h"

namespace forge::lingua {

int intermediate_size(const Model& model) {
  if (model.hidden_dim) return *model.hidden_dim;
  if (model.model_name) return 2 * model.dim;
  double width = std::floor(2.0 * (4.0 * model.dim) / 3.0);
  if (model.ffn_dim_multiplier) width = std::floor(*model.ffn_dim_multiplier * width);
  const double rounded = std::ceil(width / model.multiple_of) * model.multiple_of;
  return rounded > std::numeric_limits<int>::max() ? 0 : static_cast<int>(rounded);
}

namespace {

std::string width_remark(const Model& model) {
  if (model.hidden_dim) return "hidden_dim";
  if (model.model_name) return "2 dim";
  std::string remark = "2/3 of 4 dim";
  if (model.ffn_dim_multiplier) remark += " × " + shortest(*model.ffn_dim_multiplier);
  return remark + ", rounded up to a multiple of " + std::to_string(model.multiple_of);
}

/// A tokenizer of lingua's as forge's.
struct KnownTokenizer {
  const char* name;
  const char* kind;
  int vocab_size;          ///< assumed where the recipe gives none
  const char* assumption;  ///< whose vocabulary that is
};
constexpr KnownTokenizer known_tokenizers[] = {
    {"sp", "sentencepiece", 32000, "Llama 2's"},
    {"tiktoken", "tiktoken", 128256, "Llama 3's"},
    {"bytes", "byte_level_bpe", 262, "256 bytes and forge's special tokens"}};

/// A linear model of lingua's as forge's mixer.
struct KnownMixer {
  const char* name;
  const char* kind;
};
constexpr KnownMixer known_mixers[] = {{"GLA5", "gla5"}, {"GDN2", "gdn2"}, {"Mamba2", "mamba2"}};

/// Of Mamba2 where the recipe gives none.
constexpr int mamba_ssm = 256;

/// Converts a recipe to a config.
class Import {
 public:
  Import(const ReadRecipe& read, const ImportOptions& options)
      : read_(read), recipe_(read.recipe), options_(options) {}

  ImportedRecipe run() {
    imported_.file_name = read_.file_name;
    imported_.unsupported = read_.unsupported;
    imported_.unknown = read_.unknown;
    convert_shape();
    if (recipe_.model.model_name) {
      convert_linear();
    } else {
      convert_attention();
      convert_position();
      convert_llama();
    }
    convert_rest_of_model();
    convert_canon();
    convert_data();
    convert_tokenizer();
    convert_training();
    convert_optimizer();
    convert_schedule();
    convert_names(config::experiment_from_json(config_));
    imported_.experiment = config::experiment_from_json(config_);
    return std::move(imported_);
  }

 private:
  /// Gives a key of the config its value, with a remark on where that comes from.
  template <class T>
  void set(const std::string& path, const T& value, const std::string& remark = "") {
    nlohmann::json& json = config_[nlohmann::json::json_pointer("/" + join(split(path, '.'), "/"))];
    if constexpr (std::is_enum_v<T>) {
      json = config::name_of(value);
    } else {
      json = value;
    }
    imported_.key_comments[path] = remark;
  }
  void note(const std::string& text) { imported_.notes.push_back(text); }

  /// Throws at the place of the recipe's key.
  [[noreturn]] void fail_at(const std::string& path,
                            const std::string& message,
                            const std::string& hint = "") const {
    throw Error("'" + path + "' " + message, read_.place(path), hint);
  }

  /// Throws where the recipe's word is none that forge knows.
  void require_word(const std::string& path,
                    const std::string& word,
                    const std::vector<std::string>& known) const {
    if (std::find(known.begin(), known.end(), word) != known.end()) return;
    fail_at(
        path, "is '" + word + "'", did_you_mean(word, known, "forge knows " + join(known, ", ")));
  }

  void convert_shape() {
    const Model& from = recipe_.model;
    if (!from.n_heads) {
      fail_at("model.n_heads", "is missing", "lingua's blocks do not do without it");
    }
    const int width = intermediate_size(from);
    if (width < 1 || width > 1 << 20) {
      fail_at("model.ffn_dim_multiplier", "makes the MLP wider than " + with_thousands(1 << 20));
    }
    set("model.hidden_size", from.dim, "dim");
    set("model.num_layers", from.n_layers, "n_layers");
    set("model.mlp.intermediate_size", width, width_remark(from));
  }

  void convert_attention() {
    const Model& from = recipe_.model;
    const int heads = *from.n_heads;
    const int kv_heads = from.n_kv_heads.value_or(heads);
    if (heads % kv_heads != 0) {
      fail_at("model.n_kv_heads",
              std::to_string(kv_heads) + " does not divide model.n_heads " + std::to_string(heads));
    }
    if (!from.head_dim && from.dim % heads != 0) {
      fail_at("model.n_heads",
              std::to_string(heads) + " does not divide model.dim " + std::to_string(from.dim));
    }
    set("model.layers", std::vector<std::string>{"attention"});
    set("model.attention.num_heads", heads, "n_heads");
    set("model.attention.num_kv_heads", kv_heads, from.n_kv_heads ? "n_kv_heads" : "as n_heads");
    set("model.attention.head_dim",
        from.head_dim.value_or(from.dim / heads),
        from.head_dim ? "" : "dim / n_heads");
  }

  /// GLA5, GDN2 or Mamba2 in place of attention. Their settings are forge's defaults.
  void convert_linear() {
    const Model& from = recipe_.model;
    const std::string& name = *from.model_name;
    require_word("model.model_name", name, texts_of(known_mixers, &KnownMixer::name));
    const auto known = std::find_if(std::begin(known_mixers),
                                    std::end(known_mixers),
                                    [&](const KnownMixer& each) { return each.name == name; });
    const std::string section = std::string("model.") + known->kind + ".";
    const bool is_mamba2 = name == "Mamba2";
    const int widest = is_mamba2 ? 2 * from.dim : from.dim;
    if (widest % *from.n_heads != 0) {
      fail_at("model.n_heads",
              std::to_string(*from.n_heads) + " does not divide " + std::to_string(widest) +
                  " channels");
    }
    set("model.layers", std::vector<std::string>{known->kind}, name);
    set(section + "num_heads", *from.n_heads, "n_heads");
    set("model.init", model::ModelInit::release, "as the model's own code begins");
    if (is_mamba2) {
      if (from.mlp_type.value_or("") != "mlp10")
        fail_at("model.mlp_type", "is not mlp10", "forge's Mamba2 has a gated MLP in every layer");
      set(section + "state_size", from.mamba_ssm.value_or(mamba_ssm), "mamba_ssm");
    }
    if (from.qk_norm) fail_at("model.qk_norm", "is true", "a linear model has no attention");
    if (from.zeyuan_layernorm)
      note(
          "model.zeyuan_layernorm rounds norms elsewhere in bf16; forge rounds once, at their end");
  }

  void convert_position() {
    const Model& from = recipe_.model;
    set("model.attention.position.kind", model::PositionKind::rope);
    set("model.attention.position.pairing", model::RopePairing::lingua);
    set("model.attention.position.theta", from.rope_theta, "rope_theta");
    if (!from.rope_dim) return;
    const int rope_dim = *from.rope_dim;
    const int head_dim = from.head_dim.value_or(from.dim / *from.n_heads);
    if (rope_dim < 2 || rope_dim % 2 != 0 || rope_dim > head_dim) {
      fail_at("model.rope_dim",
              std::to_string(rope_dim) + " is not an even number from 2 to the head's " +
                  std::to_string(head_dim) + " channels",
              rope_dim == 0 ? "lingua fails with it too; leave it out to rotate whole heads" : "");
    }
    set("model.attention.position.rope_dim", rope_dim);
  }

  void convert_llama() {
    const Model& from = recipe_.model;
    for (const auto& [key, is_given] : {std::pair("model.mlp_type", from.mlp_type.has_value()),
                                        std::pair("model.mamba_ssm", from.mamba_ssm.has_value()),
                                        std::pair("model.zeyuan_layernorm", from.zeyuan_layernorm)})
      if (is_given) fail_at(key, "is of linear models", "model.model_name chooses one");
    if (from.attn_impl == "fmha" && from.sliding_window) {
      fail_at("model.sliding_window",
              std::to_string(*from.sliding_window) + " limits what attention sees",
              "forge's attention sees the whole row");
    }
    set("model.attention.qk_norm",
        from.qk_norm ? model::QkNorm::full : model::QkNorm::none,
        from.qk_norm ? "over the whole projection" : "");
    set("model.init", model::ModelInit::lingua);
    require_word("model.init_std_factor", from.init_std_factor, names_of(model::InitStdFactor()));
    set("model.init_std_factor", from.init_std_factor);
    if (from.init_base_std) set("model.init_base_std", *from.init_base_std);
  }

  void convert_rest_of_model() {
    const Model& from = recipe_.model;
    set("model.norm.eps", from.norm_eps, "norm_eps");
    set("model.norm.rounding", model::NormRounding::lingua);
    set("model.tie_embeddings", from.weight_tying, "weight_tying");
  }

  /// lingua only checks which of the letters are in the text, not their order or number.
  void convert_canon() {
    const Model& from = recipe_.model;
    const std::string letters = from.canon_set.value_or("");
    const std::string meant = from.model_name ? "AbBCD" : "ABCD";
    if (letters.find_first_not_of(meant) != std::string::npos) {
      note("model.canon_set '" + letters + "': letters besides " + meant + " mean nothing in a " +
           from.model_name.value_or("Llama"));
    }
    std::string positions;
    for (const char position : meant) {
      if (letters.find(position) != std::string::npos) positions += position;
    }
    if (positions.empty()) return;
    set("model.canon.set", positions);
    if (positions == "b") return;
    if (from.canon_bias)
      fail_at("model.canon_bias", "is true", "forge's Canon layers have no bias");
    if (from.canon_kernel < 2 || from.canon_kernel > 4) {
      fail_at("model.canon_kernel",
              std::to_string(from.canon_kernel) + " is not from 2 to 4",
              "forge's Canon layers have 2, 3 or 4 taps");
    }
    set("model.canon.kernel", from.canon_kernel);
    set("model.canon.residual", from.canon_residual);
    set("model.canon.activation",
        from.canon_activation ? model::Activation::silu : model::Activation::none);
  }

  void convert_data() {
    const Data& from = recipe_.data;
    if (from.n_views != 2) {
      fail_at("data.n_views",
              std::to_string(from.n_views) + " is not 2",
              "forge's rows have inputs and the targets after them");
    }
    set("data.order_seed", from.seed.value_or(recipe_.seed), from.seed ? "" : "the recipe's seed");
    set("data.order", config::RowOrder::shuffled, "of all rows of an epoch");
    if (from.sources.empty()) {
      note("data.sources names no data: forge's generated stories are used instead");
      return;
    }
    const auto heaviest = std::max_element(
        from.sources.begin(), from.sources.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        });
    if (from.sources.size() > 1) {
      std::string mixture;
      for (const auto& [folder, weight] : from.sources) {
        mixture += (mixture.empty() ? "" : ", ") + folder + " " + shortest(weight);
      }
      note("data.sources mixes " + mixture + "; forge reads one folder, here the heaviest");
    }
    const fs::path folder = fs::path(from.root_dir.value_or("")) / heaviest->first;
    set("data.source", "text");
    set("data.path", folder.lexically_normal().string(), "root_dir / source");
    if (!from.add_bos || from.add_eos) {
      note("documents begin with BOS and end without EOS; in the recipe add_bos is " +
           std::string(from.add_bos ? "true" : "false") + " and add_eos " +
           (from.add_eos ? "true" : "false"));
    }
  }

  void convert_tokenizer() {
    const Tokenizer& from = recipe_.data.tokenizer;
    require_word(
        "data.tokenizer.name", from.name, texts_of(known_tokenizers, &KnownTokenizer::name));
    for (const KnownTokenizer& known : known_tokenizers) {
      if (known.name != from.name) continue;
      set("tokenizer.kind", known.kind, from.name);
      convert_vocabulary(known);
    }
    if (from.path) set("tokenizer.path", *from.path);
  }

  void convert_vocabulary(const KnownTokenizer& tokenizer) {
    const int own = recipe_.model.vocab_size;
    if (own == 0) fail_at("model.vocab_size", "is 0", "-1 stands for the tokenizer's entries");
    if (own > 0 && options_.vocab_size > 0 && own != options_.vocab_size) {
      fail_at("model.vocab_size",
              std::to_string(own) + " is not the " + std::to_string(options_.vocab_size) +
                  " of --vocab-size");
    }
    int size = own > 0 ? own : options_.vocab_size;
    std::string remark;
    if (size == 0) {
      size = tokenizer.vocab_size;
      remark = tokenizer.assumption;
      note("model.vocab_size is the tokenizer's, which is taken for " + remark + ": " +
           with_thousands(size) + "; --vocab-size gives another");
    }
    if (size < 261) {
      fail_at("model.vocab_size",
              std::to_string(size) + " is less than forge's smallest tokenizer has, 261");
    }
    set("model.vocab_size", size, remark);
    set("tokenizer.vocab_size", size, remark);
  }

  /// How many GPUs see rows of their own: those of a tensor-parallel group share theirs.
  int64_t data_parallel_ranks() {
    const Distributed& from = recipe_.distributed;
    const int64_t declared = int64_t{from.dp_replicate} * from.dp_shard * from.tp_size;
    const int64_t gpus = options_.gpus > 0 ? options_.gpus : declared;
    if (gpus > 1 << 20) fail_at("distributed.dp_replicate", "makes more than a million GPUs");
    if (gpus % from.tp_size != 0) {
      fail_at(
          "distributed.tp_size",
          std::to_string(from.tp_size) + " does not divide the " + std::to_string(gpus) + " GPUs");
    }
    imported_.gpus = static_cast<int>(gpus);
    if (options_.gpus == 0) {
      note("the recipe does not say on how many GPUs it runs: taken for " + std::to_string(gpus) +
           "; --gpus gives another number");
    }
    return gpus / from.tp_size;
  }

  void convert_training() {
    const int64_t ranks = data_parallel_ranks();
    const int rows = recipe_.data.batch_size;
    const int micro_steps = recipe_.grad_acc_steps;
    const double all_rows = static_cast<double>(ranks) * rows * micro_steps;
    if (all_rows > 1 << 20) {
      fail_at("data.batch_size",
              "makes a step of " + shortest(all_rows) + " rows, of which forge takes " +
                  with_thousands(1 << 20));
    }
    std::string remark = std::to_string(imported_.gpus) + " GPUs";
    if (recipe_.distributed.tp_size > 1) {
      remark += " / tp_size " + std::to_string(recipe_.distributed.tp_size);
    }
    set("train.batch_size",
        all_rows,
        remark + " × " + std::to_string(rows) + " rows × " + std::to_string(micro_steps) +
            " micro steps");
    convert_processes(ranks);
    set("train.seq_len", recipe_.data.seq_len);
    set("train.max_steps", recipe_.steps, "steps");
    set("train.precision", precision());
    set("train.grad_clip", recipe_.optim.clip, "clip");
    set("train.log_every", recipe_.logging.freq);
    set("train.eval_every", recipe_.checkpoint.eval.every);
    set("train.checkpoint_every", recipe_.checkpoint.dump.every);
    set("train.eval_batch_size", rows, "rows of a GPU");
    set("train.document_mask", false);
    if (!recipe_.model.z_loss) return;
    set("train.z_loss.kind", config::ZLossKind::lingua_code, "z_loss as lingua computes it");
    set("train.z_loss.coefficient", 1e-4);
  }

  /// A slot for what each of the recipe's GPUs computes; forge adds them as a binary tree.
  void convert_processes(int64_t ranks) {
    const bool is_power_of_two = (ranks & (ranks - 1)) == 0;
    if (ranks == 1) return;
    if (!is_power_of_two) {
      note(std::to_string(ranks) +
           " GPUs with rows of their own are no power of two, which "
           "train.gradient_slots must be: it is left out");
      return;
    }
    set("train.gradient_slots", ranks, "one for each GPU with rows of its own");
    set("parallel.processes", "auto", "as many GPUs as there are, up to the slots");
  }

  model::Precision precision() const {
    const std::string& dtype = recipe_.distributed.model_dtype;
    require_word("distributed.model_dtype", dtype, {"bf16", "fp32"});
    return dtype == "bf16" ? model::Precision::bfloat16 : model::Precision::float32;
  }

  void convert_optimizer() {
    const Optim& from = recipe_.optim;
    set("optimizer.type", "adamw");
    set("optimizer.lr", from.lr);
    set("optimizer.betas", std::vector<double>{from.beta1, from.beta2});
    set("optimizer.eps", from.epsilon);
    set("optimizer.weight_decay", from.weight_decay, "on all parameters, norms and embeddings too");
  }

  void convert_schedule() {
    const Optim& from = recipe_.optim;
    require_word(
        "optim.scheduler", from.scheduler, {"constant", "linear", "inv_sqrt", "cosine", "wsd"});
    const bool is_constant = from.scheduler == "constant";
    const bool is_cosine = from.scheduler == "cosine";
    const bool is_wsd = from.scheduler == "wsd";
    set("schedule.type", from.scheduler);
    set("schedule.warmup_steps",
        is_constant ? 0 : from.warmup,
        is_constant ? "lingua's constant rate has no warm-up" : "");
    if (is_constant) return;
    set("schedule.lr_min_ratio", from.lr_min_ratio);
    if (is_cosine || is_wsd) set("schedule.cycle_length", from.cycle_length);
    if (is_cosine) set("schedule.cosine_theta", from.cosine_theta);
    if (is_wsd) set("schedule.decay_fraction", from.decay_fraction);
    if (from.scheduler == "inv_sqrt") set("schedule.exp_factor", from.exp_factor);
  }

  void convert_names(const config::Experiment& experiment) {
    const model::ModelConfig& model = experiment.model;
    const config::TrainConfig& train = experiment.train;
    std::string name = options_.name.empty() ? recipe_.name : options_.name;
    if (name.empty()) name = fs::path(read_.file_name).stem().string();
    if (name.empty()) name = "lingua";
    const std::string canon = model.canon.set.empty() ? "" : ", Canon " + model.canon.set;
    set("name", name);
    set("description",
        std::to_string(model.num_layers) + " layers of width " + std::to_string(model.hidden_size) +
            canon + ": " + with_thousands(train.max_steps) + " steps of " +
            with_thousands(train.batch_size) + " × " + with_thousands(train.seq_len) + " tokens");
    set("seed", recipe_.model.seed, "model.seed, of the initial weights");
  }

  const ReadRecipe& read_;
  const Recipe& recipe_;
  const ImportOptions& options_;
  nlohmann::json config_ = nlohmann::json::object();  ///< the keys that the recipe decides
  ImportedRecipe imported_;
};

}  // namespace

ImportedRecipe import_recipe(const ReadRecipe& read, const ImportOptions& options) {
  return Import(read, options).run();
}

nlohmann::ordered_json to_json(const ImportedRecipe& imported) {
  nlohmann::ordered_json unsupported = nlohmann::ordered_json::array();
  for (const UnsupportedKey& key : imported.unsupported) {
    unsupported.push_back({{"key", key.path}, {"value", key.value}, {"reason", key.reason}});
  }
  nlohmann::ordered_json unknown = nlohmann::ordered_json::array();
  for (const Error& error : imported.unknown) {
    unknown.push_back({{"message", error.message()},
                       {"at", project::to_json(error.where())},
                       {"hint", error.hint()}});
  }
  return {{"name", imported.experiment.name},
          {"gpus", imported.gpus},
          {"config", config::to_json(imported.experiment)},
          {"notes", imported.notes},
          {"no_counterpart", std::move(unsupported)},
          {"unknown", std::move(unknown)}};
}

}  // namespace forge::lingua
