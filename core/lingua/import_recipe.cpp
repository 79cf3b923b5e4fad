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

/// An import as it goes on: what is read, what is stated. Its parts are in import_model.cpp,
/// import_data.cpp and import_training.cpp.
class Import {
 public:
  Import(const ReadRecipe& read, const ImportOptions& options)
      : read_(read), recipe_(read.recipe), options_(options) {}

  ImportedRecipe run();

 private:
  /// Gives a key of the config its value, with a remark on where that comes from.
  template <class T, class U>
  void state(const std::string& path, T& field, U value, const std::string& remark = "") {
    field = static_cast<T>(value);
    imported_.stated[path] = remark;
  }
  void note(const std::string& text) { imported_.notes.push_back(text); }
  /// Throws at the place of the recipe's key.
  [[noreturn]] void refuse(const std::string& path,
                           const std::string& message,
                           const std::string& hint = "") const;
  [[noreturn]] void refuse_word(const std::string& path,
                                const std::string& word,
                                const std::vector<std::string>& known) const;

  void take_shape();
  void take_position();
  void take_rest_of_model();
  void take_canon();

  void take_data();
  void take_tokenizer();
  void take_vocabulary();

  int64_t data_parallel_ranks();
  model::Precision precision() const;
  void take_training();
  void take_optimizer();
  void take_schedule();

  void take_names();

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

void Import::take_shape() {
  const Model& from = recipe_.model;
  model::ModelConfig& model = experiment_.model;
  if (!from.n_heads) {
    refuse("model.n_heads", "is missing", "lingua's blocks do not do without it");
  }
  const int heads = *from.n_heads;
  const int kv_heads = from.n_kv_heads.value_or(heads);
  if (heads % kv_heads != 0) {
    refuse("model.n_kv_heads",
           std::to_string(kv_heads) + " does not divide model.n_heads " + std::to_string(heads));
  }
  if (!from.head_dim && from.dim % heads != 0) {
    refuse("model.n_heads",
           std::to_string(heads) + " does not divide model.dim " + std::to_string(from.dim));
  }
  const int width = intermediate_size(from);
  if (width < 1 || width > 1 << 20) {
    refuse("model.ffn_dim_multiplier", "makes the MLP wider than " + with_thousands(1 << 20));
  }
  state("model.layers", model.layers, std::vector<std::string>{"attention"});
  state("model.hidden_size", model.hidden_size, from.dim, "dim");
  state("model.num_layers", model.num_layers, from.n_layers, "n_layers");
  state("model.attention.num_heads", model.attention.num_heads, heads, "n_heads");
  state("model.attention.num_kv_heads",
        model.attention.num_kv_heads,
        kv_heads,
        from.n_kv_heads ? "n_kv_heads" : "as n_heads");
  state("model.attention.head_dim",
        model.attention.head_dim,
        from.head_dim.value_or(from.dim / heads),
        from.head_dim ? "" : "dim / n_heads");
  state("model.mlp.intermediate_size", model.mlp.intermediate_size, width, width_remark(from));
}

void Import::take_position() {
  const Model& from = recipe_.model;
  model::PositionConfig& position = experiment_.model.attention.position;
  state("model.attention.position.kind", position.kind, model::PositionKind::rope);
  state("model.attention.position.pairing", position.pairing, model::RopePairing::lingua);
  state("model.attention.position.theta", position.theta, from.rope_theta, "rope_theta");
  if (!from.rope_dim) return;
  const int rope_dim = *from.rope_dim;
  if (rope_dim < 2 || rope_dim % 2 != 0 || rope_dim > experiment_.model.attention.head_dim) {
    refuse("model.rope_dim",
           std::to_string(rope_dim) + " is not an even number from 2 to the head's " +
               std::to_string(experiment_.model.attention.head_dim) + " channels",
           rope_dim == 0 ? "lingua fails with it too; leave it out to rotate whole heads" : "");
  }
  state("model.attention.position.rope_dim", position.rope_dim, rope_dim);
}

void Import::take_rest_of_model() {
  const Model& from = recipe_.model;
  model::ModelConfig& model = experiment_.model;
  if (from.attn_impl == "fmha" && from.sliding_window) {
    refuse("model.sliding_window",
           std::to_string(*from.sliding_window) + " limits what attention sees",
           "forge's attention sees the whole row");
  }
  state("model.norm.eps", model.norm.eps, from.norm_eps, "norm_eps");
  state("model.norm.rounding", model.norm.rounding, model::NormRounding::lingua);
  state("model.tie_embeddings", model.tie_embeddings, from.weight_tying, "weight_tying");
  state("model.attention.qk_norm",
        model.attention.qk_norm,
        from.qk_norm ? model::QkNorm::full : model::QkNorm::none,
        from.qk_norm ? "over the whole projection" : "");
  state("model.init", model.init, model::ModelInit::lingua);
  const std::vector<std::string>& factors = names_of(model::InitStdFactor());
  const auto factor = std::find(factors.begin(), factors.end(), from.init_std_factor);
  if (factor == factors.end()) refuse_word("model.init_std_factor", from.init_std_factor, factors);
  state("model.init_std_factor", model.init_std_factor, factor - factors.begin());
  if (from.init_base_std) {
    state("model.init_base_std", model.init_base_std, *from.init_base_std);
  }
}

/// lingua asks whether a letter is in the text; order, repetition and others count for nothing.
void Import::take_canon() {
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
  if (from.canon_bias) refuse("model.canon_bias", "is true", "forge's Canon layers have no bias");
  if (from.canon_kernel < 2 || from.canon_kernel > 4) {
    refuse("model.canon_kernel",
           std::to_string(from.canon_kernel) + " is not from 2 to 4",
           "forge's Canon layers have 2, 3 or 4 taps");
  }
  state("model.canon.set", canon.set, set);
  state("model.canon.kernel", canon.kernel, from.canon_kernel);
  state("model.canon.residual", canon.residual, from.canon_residual);
  state("model.canon.activation",
        canon.activation,
        from.canon_activation ? model::Activation::silu : model::Activation::none);
}

void Import::take_data() {
  const Data& from = recipe_.data;
  config::DataConfig& data = experiment_.data;
  if (from.n_views != 2) {
    refuse("data.n_views",
           std::to_string(from.n_views) + " is not 2",
           "forge's rows have inputs and the targets after them");
  }
  state("data.seed",
        data.seed,
        from.seed.value_or(recipe_.seed),
        from.seed ? "" : "the recipe's seed");
  state("data.order", data.order, config::RowOrder::shuffled, "of all rows of an epoch");
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
  state("data.source", data.source, "text");
  state("data.path", data.path, folder.lexically_normal().string(), "root_dir / source");
  if (!from.add_bos || from.add_eos) {
    note("documents begin with BOS and end without EOS; in the recipe add_bos is " +
         std::string(from.add_bos ? "true" : "false") + " and add_eos " +
         (from.add_eos ? "true" : "false"));
  }
}

void Import::take_tokenizer() {
  const Tokenizer& from = recipe_.data.tokenizer;
  config::TokenizerConfig& tokenizer = experiment_.tokenizer;
  static const std::vector<std::string> known = {"sp", "tiktoken", "bytes"};
  if (std::find(known.begin(), known.end(), from.name) == known.end()) {
    refuse_word("data.tokenizer.name", from.name, known);
  }
  const std::string kind = from.name == "sp"         ? "sentencepiece"
                           : from.name == "tiktoken" ? "tiktoken"
                                                     : "byte_level_bpe";
  state("tokenizer.kind", tokenizer.kind, kind, from.name);
  take_vocabulary();
  if (from.path) state("tokenizer.path", tokenizer.path, *from.path);
}

void Import::take_vocabulary() {
  const int own = recipe_.model.vocab_size;
  if (own == 0) refuse("model.vocab_size", "is 0", "-1 stands for the tokenizer's entries");
  if (own > 0 && options_.vocab_size > 0 && own != options_.vocab_size) {
    refuse("model.vocab_size",
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
    refuse("model.vocab_size",
           std::to_string(size) + " is less than forge's smallest tokenizer has, 261");
  }
  state("model.vocab_size", experiment_.model.vocab_size, size, remark);
  state("tokenizer.vocab_size", experiment_.tokenizer.vocab_size, size, remark);
}

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

model::Precision Import::precision() const {
  const std::string& dtype = recipe_.distributed.model_dtype;
  if (dtype == "bf16") return model::Precision::bfloat16;
  if (dtype == "fp32") return model::Precision::float32;
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

ImportedRecipe Import::run() {
  imported_.file_name = read_.file_name;
  imported_.left_out = read_.left_out;
  imported_.unknown = read_.unknown;
  take_shape();
  take_position();
  take_rest_of_model();
  take_canon();
  take_data();
  take_tokenizer();
  take_training();
  take_optimizer();
  take_schedule();
  take_names();
  return std::move(imported_);
}

void Import::refuse(const std::string& path,
                    const std::string& message,
                    const std::string& hint) const {
  throw Error("'" + path + "' " + message, read_.place(path), hint);
}

void Import::refuse_word(const std::string& path,
                         const std::string& word,
                         const std::vector<std::string>& known) const {
  const std::string near = did_you_mean(word, known);
  refuse(path, "is '" + word + "'", near.empty() ? "forge knows " + join(known, ", ") : near);
}

void Import::take_names() {
  const model::ModelConfig& model = experiment_.model;
  const config::TrainConfig& train = experiment_.train;
  std::string name = options_.name.empty() ? recipe_.name : options_.name;
  if (name.empty()) name = fs::path(read_.file_name).stem().string();
  if (name.empty()) name = "lingua";
  const std::string canon = model.canon.set.empty() ? "" : ", Canon " + model.canon.set;
  state("name", experiment_.name, name);
  state("description",
        experiment_.description,
        std::to_string(model.num_layers) + " layers of width " + std::to_string(model.hidden_size) +
            canon + ": " + with_thousands(train.max_steps) + " steps of " +
            with_thousands(train.batch_size) + " × " + with_thousands(train.seq_len) + " tokens");
  state("seed", experiment_.seed, recipe_.model.seed, "model.seed, of the initial weights");
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
  for (const LeftOut& left_out : imported.left_out) {
    json["no_counterpart"].push_back(
        {{"key", left_out.path}, {"value", left_out.value}, {"reason", left_out.reason}});
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
