#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/schema.h"
#include "core/model/attention/attention.h"
#include "core/model/gdn2/gdn2.h"
#include "core/model/gla5/gla5.h"
#include "core/model/mamba2/mamba2.h"
#include "core/model/mlp/mlp.h"
#include "core/model/norm.h"
#include "core/model/own/own_block.h"

/// The section `model` of a config: a stack of layers, each a mixer and an MLP behind norms. Every
/// kind of block has its own section, described in its own folder.
namespace forge::model {

enum class ModelInit { forgather, huggingface, lingua, release };
/// What the matrices that end a residual branch are divided by under lingua's initialisation.
enum class InitStdFactor { disabled, global_depth, current_depth, dim_ratio };

struct CanonConfig {
  std::string set;  ///< canonical: letters of AbBCD, each at most once, in order; "" = no Canon
  int kernel = 4;
  bool residual = true;
  Activation activation = Activation::none;
  bool bias = false;  ///< always false: the layer has none

  bool has(char position) const { return set.find(position) != std::string::npos; }
  /// Whether any position but b, a linear mixer's own convolution, which no other key changes.
  bool has_residual_layers() const { return set.find_first_not_of('b') != std::string::npos; }
};

struct ModelConfig;

/// An element of model.layers: a kind of mixer, and what is laid upon the section `model` for its
/// layers alone.
struct LayerSpec {
  LayerSpec() = default;
  LayerSpec(std::string kind) : mixer(std::move(kind)) {}
  LayerSpec(const char* kind) : mixer(kind) {}

  std::string mixer;
  std::string settings;  ///< sections as JSON, {"attention":{"window":128}}; "": none
  /// The model with the settings, whose layers are all like this one; null where there are none.
  std::shared_ptr<const ModelConfig> model;
};

struct ModelConfig {
  int vocab_size = 0;
  int hidden_size = 0;
  int num_layers = 0;
  bool tie_embeddings = false;
  std::vector<LayerSpec> layers = {"attention"};  ///< repeated up to num_layers
  AttentionConfig attention;
  Gla5Config gla5;
  Gdn2Config gdn2;
  Mamba2Config mamba2;
  MlpConfig mlp;
  NormConfig norm;
  CanonConfig canon;
  std::map<std::string, OwnBlock> blocks;  ///< of one's own, by the names that model.layers has
  ModelInit init = ModelInit::forgather;
  std::optional<double> init_base_std;                      ///< lingua; none: 1/sqrt(fan-in)
  InitStdFactor init_std_factor = InitStdFactor::disabled;  ///< lingua

  /// Of layer `layer`, counted from 0.
  const LayerSpec& spec(int layer) const {
    return layers[static_cast<size_t>(layer) % layers.size()];
  }
  /// The kind of its mixer.
  const std::string& mixer(int layer) const { return spec(layer).mixer; }
  /// What its blocks are made by: this model, with the layer's own settings laid upon it.
  const ModelConfig& of_layer(int layer) const {
    const LayerSpec& own = spec(layer);
    return own.model ? *own.model : *this;
  }
};

inline schema::Names names_of(ModelInit) {
  return {"forgather", "huggingface", "lingua", "release"};
}
inline schema::Names names_of(InitStdFactor) {
  return {"disabled", "global_depth", "current_depth", "dim_ratio"};
}

template <class Visitor>
void fields(Visitor& visit, CanonConfig& c) {
  visit.field("set",
              c.set,
              "positions with a Canon layer: letters of ABCD; b: a linear mixer's own short "
              "convolution; empty: none");
  visit.field("kernel", c.kernel, "taps of the causal convolution", schema::between(2, 4));
  visit.field("residual", c.residual, "add the input to the convolution's output");
  visit.field("activation", c.activation, "applied to the convolution's output");
  visit.field("bias", c.bias, "false: a Canon layer has no bias");
}

template <class Visitor>
void fields(Visitor& visit, ModelConfig& c) {
  using namespace schema;
  visit.field("vocab_size", c.vocab_size, "entries of the vocabulary", required(up_to(1 << 24)));
  visit.field(
      "hidden_size", c.hidden_size, "width of the residual stream", required(up_to(1 << 18)));
  visit.field(
      "num_layers", c.num_layers, "layers, each a mixer and an MLP", required(up_to(1 << 12)));
  visit.field("tie_embeddings", c.tie_embeddings, "one matrix as embedding and output projection");
  visit.field(
      "layers",
      c.layers,
      "kinds of mixers, repeated up to num_layers: attention, gla5, gdn2, mamba2, or a "
      "block of one's own, blocks/NAME.py; one with settings of its own: {mixer: attention, "
      "attention: {window: 128}}");
  visit.section("attention", c.attention, "softmax attention", if_set());
  visit.section("gla5", c.gla5, "gated linear attention", if_set());
  visit.section("gdn2", c.gdn2, "gated delta network", if_set());
  visit.section("mamba2", c.mamba2, "Mamba-2", if_set());
  visit.section("mlp", c.mlp, "MLP of every layer");
  visit.section("norm", c.norm, "norms before the blocks and the output projection");
  visit.section("canon", c.canon, "Canon layers");
  visit.sections("blocks", c.blocks, "blocks of one's own, by their names");
  visit.field("init", c.init, "scheme of the initial weights");
  visit.field("init_base_std",
              c.init_base_std,
              "init lingua: standard deviation; null: 1 / sqrt(fan-in)",
              above(0));
  visit.field("init_std_factor",
              c.init_std_factor,
              "init lingua: what divides the deviation at the end of a residual branch");
}

}  // namespace forge::model
