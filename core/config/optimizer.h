#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/schema.h"
#include "core/model/weight_groups.h"

/// The section `optimizer`: which algorithm updates the weights, and its settings. Formulas and
/// sources are in docs/MATHEMATICS.md.
namespace forge::config {

using model::WeightGroup;

/// What Muon multiplies the learning rate of a matrix by. The names are those of torch.optim.Muon.
enum class LrAdjustment {
  original,         ///< sqrt(max(1, rows / columns))
  match_rms_adamw,  ///< 0.2 sqrt(max(rows, columns))
};
inline schema::Names names_of(LrAdjustment) { return {"original", "match_rms_adamw"}; }

struct MuonConfig {
  double momentum = 0.95;
  bool nesterov = true;
  int newton_schulz_steps = 5;
  std::vector<double> newton_schulz_coefficients = {3.4445, -4.775, 2.0315};
  LrAdjustment adjust_lr = LrAdjustment::match_rms_adamw;
  std::optional<double> adamw_lr;  ///< of the weights that AdamW updates; none: optimizer.lr
};

struct LionConfig {
  std::vector<double> betas = {0.9, 0.99};
};

struct SgdConfig {
  double momentum = 0.9;
  bool nesterov = false;
};

/// In place of optimizer.weight_decay.
struct WeightDecayOf {
  std::optional<double> matrices, embeddings, head, norms, canon, vectors;
};

struct OptimizerConfig {
  std::string type = "adamw";  ///< adamw | muon | lion | sgd
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.999};  ///< adamw, muon
  double eps = 1e-8;                         ///< adamw, muon
  double weight_decay = 0.01;
  WeightDecayOf weight_decay_of;
  MuonConfig muon;
  LionConfig lion;
  SgdConfig sgd;

  double weight_decay_for(WeightGroup group) const;
  /// Whether Muon updates such weights and not AdamW.
  bool is_orthogonalised(WeightGroup group) const {
    return type == "muon" && group == WeightGroup::matrices;
  }
  /// What the scheduled rate is multiplied by for such weights.
  double lr_factor(WeightGroup group) const;
  model::Moments moments() const;
};

const std::vector<std::string>& optimizer_types();

template <class Visitor>
void fields(Visitor& visit, WeightDecayOf& c) {
  using namespace schema;
  const Limits limits = if_set(at_least(0));
  visit.field("matrices", c.matrices, "of matrices within the layers", limits);
  visit.field("embeddings", c.embeddings, "of the embedding of tokens", limits);
  visit.field("head", c.head, "of the output projection, where it is not the embedding", limits);
  visit.field("norms", c.norms, "of norms", limits);
  visit.field("canon", c.canon, "of Canon layers and short convolutions", limits);
  visit.field("vectors", c.vectors, "of biases and all else of one dimension", limits);
}

template <class Visitor>
void fields(Visitor& visit, MuonConfig& c) {
  using namespace schema;
  visit.field("momentum", c.momentum, "decay of the mean gradient", between(0, 1));
  visit.field("nesterov", c.nesterov, "look ahead by one step of the momentum");
  visit.field("newton_schulz_steps",
              c.newton_schulz_steps,
              "iterations that make an update orthogonal",
              between(1, 32));
  visit.field("newton_schulz_coefficients",
              c.newton_schulz_coefficients,
              "a, b and c of an iteration, X = a X + b (X X') X + c (X X')(X X') X");
  visit.field("adjust_lr",
              c.adjust_lr,
              "of a matrix: original sqrt(max(1, rows / columns)) lr; match_rms_adamw 0.2 "
              "sqrt(max(rows, columns)) lr");
  visit.field("adamw_lr",
              c.adamw_lr,
              "peak learning rate of what AdamW updates; null: optimizer.lr",
              or_null(above(0)));
}

template <class Visitor>
void fields(Visitor& visit, LionConfig& c) {
  visit.field("betas",
              c.betas,
              "weights of the moment in the update, and in the moment that is kept",
              schema::between(0, 1));
}

template <class Visitor>
void fields(Visitor& visit, SgdConfig& c) {
  visit.field("momentum", c.momentum, "decay of the sum of gradients", schema::between(0, 1));
  visit.field("nesterov", c.nesterov, "look ahead by one step of the momentum");
}

/// A section of an optimizer that the type does not name is written only where it is set: files
/// and identities of runs with AdamW stay what they were.
template <class Visitor>
void fields(Visitor& visit, OptimizerConfig& c) {
  using namespace schema;
  const auto written_for = [&](const char* type) { return c.type == type ? Limits{} : if_set(); };
  visit.field("type", c.type, "adamw, muon (matrices; AdamW the rest), lion or sgd");
  visit.field("lr", c.lr, "peak learning rate", at_least(0));
  visit.field("betas",
              c.betas,
              "adamw, and muon's AdamW: decay of the first and second moment",
              between(0, 1));
  visit.field("eps", c.eps, "adamw, and muon's AdamW: added to the denominator", above(0));
  visit.field("weight_decay", c.weight_decay, "decoupled weight decay", at_least(0));
  visit.section("weight_decay_of",
                c.weight_decay_of,
                "weight decay of one group of weights; null: optimizer.weight_decay",
                if_set());
  visit.section("muon", c.muon, "of type muon", written_for("muon"));
  visit.section("lion", c.lion, "of type lion", written_for("lion"));
  visit.section("sgd", c.sgd, "of type sgd", written_for("sgd"));
}

}  // namespace forge::config
