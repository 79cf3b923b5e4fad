#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/keys.h"

namespace forge::config {
namespace {

const std::string type_key = "optimizer.type";

/// A key, or all of a section, that only some optimizers read.
struct ReadBy {
  std::string key;
  std::vector<std::string> types;
};

const std::vector<ReadBy>& readers() {
  static const std::vector<ReadBy> all = {{"optimizer.betas", {"adamw", "muon"}},
                                          {"optimizer.eps", {"adamw", "muon"}},
                                          {"optimizer.muon", {"muon"}},
                                          {"optimizer.lion", {"lion"}},
                                          {"optimizer.sgd", {"sgd"}}};
  return all;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "optimizer.lion.betas" for lion in place of optimizer.betas.
std::string hint_for(const std::string& key, const std::string& type) {
  const std::string own = "optimizer." + type + "." + key.substr(key.rfind('.') + 1);
  return find_key(own) ? "that of " + type + " is " + own : "leave it out";
}

void refuse_unread(Draft& draft, const std::string& key, const std::vector<std::string>& types) {
  if (draft.origins.at(key).set_by.layer == default_layer) return;
  const std::string type = draft.experiment.optimizer.type;
  if (is_inherited(draft, key, type_key)) {
    derive(draft, key, type_key, default_text(*find_key(key)));
    reset_key(draft.experiment, key);
    return;
  }
  refuse_unused(
      draft,
      key,
      type_key,
      "has no meaning where optimizer.type is " + type + ": it is a key of " + join(types, " and "),
      hint_for(key, type));
}

void refuse_unread_keys(Draft& draft, const ProblemSink& on_problem) {
  const std::string type = draft.experiment.optimizer.type;
  for (const ReadBy& read : readers()) {
    if (contains(read.types, type)) continue;
    for (const std::string& key : all_key_paths()) {
      if (key != read.key && !starts_with(key, read.key + ".")) continue;
      attempt(
          on_problem, Problem::Kind::disagreement, [&] { refuse_unread(draft, key, read.types); });
    }
  }
}

void check_betas(const Draft& draft,
                 const std::string& key,
                 const std::vector<double>& betas,
                 const std::string& example) {
  const bool below_one = std::all_of(betas.begin(), betas.end(), [](double b) { return b < 1; });
  if (betas.size() == 2 && below_one) return;
  throw complaint(draft,
                  {key},
                  betas.size() == 2
                      ? "'" + key + "' must be below 1"
                      : "'" + key + "' must be two numbers, not " + std::to_string(betas.size()),
                  "for example " + example);
}

void check_momentum(const Draft& draft, const std::string& section, double momentum) {
  if (momentum < 1) return;
  throw complaint(draft,
                  {section + ".momentum"},
                  "'" + section + ".momentum' must be below 1",
                  "for example 0.9");
}

void check_muon(const Draft& draft) {
  const OptimizerConfig& o = draft.experiment.optimizer;
  check_momentum(draft, "optimizer.muon", o.muon.momentum);
  if (o.muon.newton_schulz_coefficients.size() != 3) {
    throw complaint(draft,
                    {"optimizer.muon.newton_schulz_coefficients"},
                    "'optimizer.muon.newton_schulz_coefficients' must be three numbers, not " +
                        std::to_string(o.muon.newton_schulz_coefficients.size()),
                    "for example [3.4445, -4.775, 2.0315]");
  }
  constexpr double largest = 1000;  // an iteration of far less diverges
  for (const double coefficient : o.muon.newton_schulz_coefficients) {
    if (std::abs(coefficient) <= largest) continue;
    throw complaint(draft,
                    {"optimizer.muon.newton_schulz_coefficients"},
                    "'optimizer.muon.newton_schulz_coefficients' must lie between -1000 and 1000, "
                    "not " +
                        shortest(coefficient),
                    "for example [3.4445, -4.775, 2.0315]");
  }
  // One schedule drives both rates, so one is a multiple of the other.
  if (o.muon.adamw_lr && o.lr == 0) {
    throw complaint(draft,
                    {"optimizer.lr", "optimizer.muon.adamw_lr"},
                    "optimizer.muon.adamw_lr has no meaning where optimizer.lr is 0",
                    "both follow the schedule of optimizer.lr");
  }
}

void check_sgd(const Draft& draft) {
  const SgdConfig& sgd = draft.experiment.optimizer.sgd;
  check_momentum(draft, "optimizer.sgd", sgd.momentum);
  if (!sgd.nesterov || sgd.momentum > 0) return;
  throw complaint(draft,
                  {"optimizer.sgd.nesterov", "optimizer.sgd.momentum"},
                  "optimizer.sgd.nesterov true has no meaning without optimizer.sgd.momentum",
                  "give a momentum above 0, for example 0.9");
}

}  // namespace

void check_and_complete_optimizer(Draft& draft, const ProblemSink& on_problem) {
  using Kind = Problem::Kind;
  const OptimizerConfig& o = draft.experiment.optimizer;
  if (!contains(optimizer_types(), o.type)) return;  // which check_words has said
  refuse_unread_keys(draft, on_problem);
  attempt(on_problem, Kind::wrong_value, [&] {
    check_betas(draft, "optimizer.betas", o.betas, "[0.9, 0.999]");
  });
  attempt(on_problem, Kind::wrong_value, [&] {
    check_betas(draft, "optimizer.lion.betas", o.lion.betas, "[0.9, 0.99]");
  });
  attempt(on_problem, Kind::wrong_value, [&] { check_muon(draft); });
  attempt(on_problem, Kind::wrong_value, [&] { check_sgd(draft); });
  attempt(on_problem, Kind::disagreement, [&] {
    if (!draft.experiment.model.tie_embeddings) return;
    refuse_unused(draft,
                  "optimizer.weight_decay_of.head",
                  "model.tie_embeddings",
                  "has no meaning where model.tie_embeddings is true",
                  "optimizer.weight_decay_of.embeddings is of both");
  });
}

}  // namespace forge::config
