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

/// An import as it goes on: what is read, what is key_comments. Its parts are in import_model.cpp,
/// import_data.cpp and import_training.cpp.
class Import {
 public:
  Import(const ReadRecipe& read, const ImportOptions& options)
      : read_(read), recipe_(read.recipe), options_(options) {}

  ImportedRecipe run();

 private:
  /// Gives a key of the config its value, with a remark on where that comes from.
  template <class T, class U>
  void set_key(const std::string& path, T& field, U value, const std::string& remark = "") {
    field = static_cast<T>(value);
    imported_.key_comments[path] = remark;
  }
  void note(const std::string& text) { imported_.notes.push_back(text); }
  /// Throws at the place of the recipe's key.
  [[noreturn]] void fail_at(const std::string& path,
                            const std::string& message,
                            const std::string& hint = "") const;
  [[noreturn]] void fail_at_word(const std::string& path,
                                 const std::string& word,
                                 const std::vector<std::string>& known) const;

  void convert_shape();
  void convert_position();
  void convert_rest_of_model();
  void convert_canon();

  void convert_data();
  void convert_tokenizer();
  void convert_vocabulary();

  int64_t data_parallel_ranks();
  model::Precision precision() const;
  void convert_training();
  void convert_optimizer();
  void convert_schedule();

  void convert_names();

  const ReadRecipe& read_;
  const Recipe& recipe_;
  const ImportOptions& options_;
  ImportedRecipe imported_;
  config::Experiment& experiment_ = imported_.experiment;
};

namespace {

std::string width_remark(const Model& model) {
  if (model.hidden_dim) return "hidden_dim";
  std::string remark = "2/3 of 4 dim";
  if (model.ffn_dim_multiplier) remark += " × " + shortest(*model.ffn_dim_multiplier);
  return remark + ", rounded up to a multiple of " + std::to_string(model.multiple_of);
}

}  // namespace

int intermediate_size(const Model& model) {
  if (model.hidden_dim) return *model.hidden_dim;
  double width = std::floor(2.0 * (4.0 * model.dim) / 3.0);
  if (model.ffn_dim_multiplier) width = std::floor(*model.ffn_dim_multiplier * width);
  const double rounded = std::ceil(width / model.multiple_of) * model.multiple_of;
  return rounded > std::numeric_limits<int>::max() ? 0 : static_cast<int>(rounded);
}

void Import::convert_shape() {
  const Model& from = recipe_.model;
  model::ModelConfig& model = experiment_.model;
  if (!from.n_heads) {
    fail_at("model.n_heads", "is missing", "lingua's blocks do not do without it");
  }
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
  const int width = intermediate_size(from);
  if (width < 1 || width > 1 << 20) {
    fail_at("model.ffn_dim_multiplier", "makes the MLP wider than " + with_thousands(1 << 20));
  }
  set_key("model.layers", model.layers, std::vector<std::string>{"attention"});
  set_key("model.hidden_size", model.hidden_size, from.dim, "dim");
  set_key("model.num_layers", model.num_layers, from.n_layers, "n_layers");
  set_key("model.attention.num_heads", model.attention.num_heads, heads, "n_heads");
  set_key("model.attention.num_kv_heads",
          model.attention.num_kv_heads,
          kv_heads,
          from.n_kv_heads ? "n_kv_heads" : "as n_heads");
  set_key("model.attention.head_dim",
          model.attention.head_dim,
          from.head_dim.value_or(from.dim / heads),
          from.head_dim ? "" : "dim / n_heads");
  set_key("model.mlp.intermediate_size", model.mlp.intermediate_size, width, width_remark(from));
}

void Import::convert_position() {
  const Model& from = recipe_.model;
  model::PositionConfig& position = experiment_.model.attention.position;
  set_key("model.attention.position.kind", position.kind, model::PositionKind::rope);
  set_key("model.attention.position.pairing", position.pairing, model::RopePairing::lingua);
  set_key("model.attention.position.theta", position.theta, from.rope_theta, "rope_theta");
  if (!from.rope_dim) return;
  const int rope_dim = *from.rope_dim;
  if (rope_dim < 2 || rope_dim % 2 != 0 || rope_dim > experiment_.model.attention.head_dim) {
    fail_at("model.rope_dim",
            std::to_string(rope_dim) + " is not an even number from 2 to the head's " +
                std::to_string(experiment_.model.attention.head_dim) + " channels",
            rope_dim == 0 ? "lingua fails with it too; leave it out to rotate whole heads" : "");
  }
  set_key("model.attention.position.rope_dim", position.rope_dim, rope_dim);
}

void Import::convert_rest_of_model() {
  const Model& from = recipe_.model;
  model::ModelConfig& model = experiment_.model;
  if (from.attn_impl == "fmha" && from.sliding_window) {
    fail_at("model.sliding_window",
            std::to_string(*from.sliding_window) + " limits what attention sees",
            "forge's attention sees the whole row");
  }
  set_key("model.norm.eps", model.norm.eps, from.norm_eps, "norm_eps");
  set_key("model.norm.rounding", model.norm.rounding, model::NormRounding::lingua);
  set_key("model.tie_embeddings", model.tie_embeddings, from.weight_tying, "weight_tying");
  set_key("model.attention.qk_norm",
          model.attention.qk_norm,
          from.qk_norm ? model::QkNorm::full : model::QkNorm::none,
          from.qk_norm ? "over the whole projection" : "");
  set_key("model.init", model.init, model::ModelInit::lingua);
  const std::vector<std::string>& factors = names_of(model::InitStdFactor());
  const auto factor = std::find(factors.begin(), factors.end(), from.init_std_factor);
  if (factor == factors.end()) fail_at_word("model.init_std_factor", from.init_std_factor, factors);
  set_key("model.init_std_factor", model.init_std_factor, factor - factors.begin());
  if (from.init_base_std) {
    set_key("model.init_base_std", model.init_base_std, *from.init_base_std);
  }
}

/// lingua asks whether a letter is in the text; order, repetition and others count for nothing.
void Import::convert_canon() {
  const Model& from = recipe_.model;
  const std::string letters = from.canon_set.value_or("");
  model::CanonConfig& canon = experiment_.model.canon;
  if (letters.find_first_not_of("ABCD") != std::string::npos) {
    note("model.canon_set '" + letters + "': letters besides ABCD mean nothing in a Llama");
  }
  std::string set;
  for (const char position : {'A', 'B', 'C', 'D'}) {
    if (letters.find(position) != std::string::npos) set += position;
  }
  if (set.empty()) return;
  if (from.canon_bias) fail_at("model.canon_bias", "is true", "forge's Canon layers have no bias");
  if (from.canon_kernel < 2 || from.canon_kernel > 4) {
    fail_at("model.canon_kernel",
            std::to_string(from.canon_kernel) + " is not from 2 to 4",
            "forge's Canon layers have 2, 3 or 4 taps");
  }
  set_key("model.canon.set", canon.set, set);
  set_key("model.canon.kernel", canon.kernel, from.canon_kernel);
  set_key("model.canon.residual", canon.residual, from.canon_residual);
  set_key("model.canon.activation",
          canon.activation,
          from.canon_activation ? model::Activation::silu : model::Activation::none);
}

void Import::convert_data() {
  const Data& from = recipe_.data;
  config::DataConfig& data = experiment_.data;
  if (from.n_views != 2) {
    fail_at("data.n_views",
            std::to_string(from.n_views) + " is not 2",
            "forge's rows have inputs and the targets after them");
  }
  set_key("data.seed",
          data.seed,
          from.seed.value_or(recipe_.seed),
          from.seed ? "" : "the recipe's seed");
  set_key("data.order", data.order, config::RowOrder::shuffled, "of all rows of an epoch");
  if (from.sources.empty()) {
    note("data.sources names no data: forge's generated stories stand in");
    return;
  }
  const auto heaviest =
      std::max_element(from.sources.begin(), from.sources.end(), [](const auto& a, const auto& b) {
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
  set_key("data.source", data.source, "text");
  set_key("data.path", data.path, folder.lexically_normal().string(), "root_dir / source");
  if (!from.add_bos || from.add_eos) {
    note("documents begin with BOS and end without EOS; in the recipe add_bos is " +
         std::string(from.add_bos ? "true" : "false") + " and add_eos " +
         (from.add_eos ? "true" : "false"));
  }
}

void Import::convert_tokenizer() {
  const Tokenizer& from = recipe_.data.tokenizer;
  config::TokenizerConfig& tokenizer = experiment_.tokenizer;
  static const std::vector<std::string> known = {"sp", "tiktoken", "bytes"};
  if (std::find(known.begin(), known.end(), from.name) == known.end()) {
    fail_at_word("data.tokenizer.name", from.name, known);
  }
  const std::string kind = from.name == "sp"         ? "sentencepiece"
                           : from.name == "tiktoken" ? "tiktoken"
                                                     : "byte_level_bpe";
  set_key("tokenizer.kind", tokenizer.kind, kind, from.name);
  convert_vocabulary();
  if (from.path) set_key("tokenizer.path", tokenizer.path, *from.path);
}

void Import::convert_vocabulary() {
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
    const std::string& name = recipe_.data.tokenizer.name;
    size = name == "sp" ? 32000 : name == "tiktoken" ? 128256 : 262;
    remark = name == "sp"         ? "Llama 2's"
             : name == "tiktoken" ? "Llama 3's"
                                  : "256 bytes and forge's special tokens";
    note("model.vocab_size is the tokenizer's, which is taken for " + remark + ": " +
         with_thousands(size) + "; --vocab-size gives another");
  }
  if (size < 261) {
    fail_at("model.vocab_size",
            std::to_string(size) + " is less than forge's smallest tokenizer has, 261");
  }
  set_key("model.vocab_size", experiment_.model.vocab_size, size, remark);
  set_key("tokenizer.vocab_size", experiment_.tokenizer.vocab_size, size, remark);
}

/// How many GPUs see rows of their own: those of a tensor-parallel group share theirs.
int64_t Import::data_parallel_ranks() {
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

void Import::convert_training() {
  config::TrainConfig& train = experiment_.train;
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
  set_key("train.batch_size",
          train.batch_size,
          all_rows,
          remark + " × " + std::to_string(rows) + " rows × " + std::to_string(micro_steps) +
              " micro steps");
  set_key("train.seq_len", train.seq_len, recipe_.data.seq_len);
  set_key("train.max_steps", train.max_steps, recipe_.steps, "steps");
  set_key("train.precision", train.precision, precision());
  set_key("train.grad_clip", train.grad_clip, recipe_.optim.clip, "clip");
  set_key("train.log_every", train.log_every, recipe_.logging.freq);
  set_key("train.eval_every", train.eval_every, recipe_.checkpoint.eval.every);
  set_key("train.checkpoint_every", train.checkpoint_every, recipe_.checkpoint.dump.every);
  set_key("train.eval_batch_size", train.eval_batch_size, rows, "rows of a GPU");
  set_key("train.document_mask", train.document_mask, false);
  if (!recipe_.model.z_loss) return;
  set_key("train.z_loss.kind",
          train.z_loss.kind,
          config::ZLossKind::lingua_code,
          "z_loss as lingua computes it");
  set_key("train.z_loss.coefficient", train.z_loss.coefficient, 1e-4);
}

model::Precision Import::precision() const {
  const std::string& dtype = recipe_.distributed.model_dtype;
  if (dtype == "bf16") return model::Precision::bfloat16;
  if (dtype == "fp32") return model::Precision::float32;
  fail_at_word("distributed.model_dtype", dtype, {"bf16", "fp32"});
}

void Import::convert_optimizer() {
  const Optim& from = recipe_.optim;
  config::OptimizerConfig& optimizer = experiment_.optimizer;
  set_key("optimizer.type", optimizer.type, "adamw");
  set_key("optimizer.lr", optimizer.lr, from.lr);
  optimizer.betas = {from.beta1, from.beta2};
  imported_.key_comments["optimizer.betas"] = "";
  set_key("optimizer.eps", optimizer.eps, from.epsilon);
  set_key("optimizer.weight_decay",
          optimizer.weight_decay,
          from.weight_decay,
          "on all parameters, norms and embeddings too");
}

void Import::convert_schedule() {
  const Optim& from = recipe_.optim;
  config::ScheduleConfig& schedule = experiment_.schedule;
  static const std::vector<std::string> known = {"constant", "linear", "inv_sqrt", "cosine", "wsd"};
  if (std::find(known.begin(), known.end(), from.scheduler) == known.end()) {
    fail_at_word("optim.scheduler", from.scheduler, known);
  }
  const bool is_constant = from.scheduler == "constant";
  const bool is_cosine = from.scheduler == "cosine";
  const bool is_wsd = from.scheduler == "wsd";
  set_key("schedule.type", schedule.type, from.scheduler);
  set_key("schedule.warmup_steps",
          schedule.warmup_steps,
          is_constant ? 0 : from.warmup,
          is_constant ? "lingua's constant rate has no warm-up" : "");
  if (is_constant) return;
  set_key("schedule.lr_min_ratio", schedule.lr_min_ratio, from.lr_min_ratio);
  if (is_cosine || is_wsd)
    set_key("schedule.cycle_length", schedule.cycle_length, from.cycle_length);
  if (is_cosine) set_key("schedule.cosine_theta", schedule.cosine_theta, from.cosine_theta);
  if (is_wsd) set_key("schedule.decay_fraction", schedule.decay_fraction, from.decay_fraction);
  if (from.scheduler == "inv_sqrt") {
    set_key("schedule.exp_factor", schedule.exp_factor, from.exp_factor);
  }
}

ImportedRecipe Import::run() {
  imported_.file_name = read_.file_name;
  imported_.unsupported = read_.unsupported;
  imported_.unknown = read_.unknown;
  convert_shape();
  convert_position();
  convert_rest_of_model();
  convert_canon();
  convert_data();
  convert_tokenizer();
  convert_training();
  convert_optimizer();
  convert_schedule();
  convert_names();
  return std::move(imported_);
}

void Import::fail_at(const std::string& path,
                     const std::string& message,
                     const std::string& hint) const {
  throw Error("'" + path + "' " + message, read_.place(path), hint);
}

void Import::fail_at_word(const std::string& path,
                          const std::string& word,
                          const std::vector<std::string>& known) const {
  const std::string near = did_you_mean(word, known);
  fail_at(path, "is '" + word + "'", near.empty() ? "forge knows " + join(known, ", ") : near);
}

void Import::convert_names() {
  const model::ModelConfig& model = experiment_.model;
  const config::TrainConfig& train = experiment_.train;
  std::string name = options_.name.empty() ? recipe_.name : options_.name;
  if (name.empty()) name = fs::path(read_.file_name).stem().string();
  if (name.empty()) name = "lingua";
  const std::string canon = model.canon.set.empty() ? "" : ", Canon " + model.canon.set;
  set_key("name", experiment_.name, name);
  set_key("description",
          experiment_.description,
          std::to_string(model.num_layers) + " layers of width " +
              std::to_string(model.hidden_size) + canon + ": " + with_thousands(train.max_steps) +
              " steps of " + with_thousands(train.batch_size) + " × " +
              with_thousands(train.seq_len) + " tokens");
  set_key("seed", experiment_.seed, recipe_.model.seed, "model.seed, of the initial weights");
}

ImportedRecipe import_recipe(const ReadRecipe& read, const ImportOptions& options) {
  return Import(read, options).run();
}

nlohmann::ordered_json to_json(const ImportedRecipe& imported) {
  nlohmann::ordered_json json;
  json["name"] = imported.experiment.name;
  json["gpus"] = imported.gpus;
  json["config"] = config::to_json(imported.experiment);
  json["notes"] = imported.notes;
  json["no_counterpart"] = nlohmann::ordered_json::array();
  for (const UnsupportedKey& unsupported : imported.unsupported) {
    json["no_counterpart"].push_back(
        {{"key", unsupported.path}, {"value", unsupported.value}, {"reason", unsupported.reason}});
  }
  json["unknown"] = nlohmann::ordered_json::array();
  for (const Error& unknown : imported.unknown) {
    json["unknown"].push_back({{"message", unknown.message()},
                               {"at", project::to_json(unknown.where())},
                               {"hint", unknown.hint()}});
  }
  return json;
}

}  // namespace forge::lingua
