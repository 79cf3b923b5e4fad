#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/weights/safetensors.h"

/// Reading the reference vectors of the linear mixers: pairs of files NAME_weights.json and
/// NAME_cases.json, one set of weights and models of several Canon sets.
namespace forge::tests {

/// The weights of a file under the names of the released code, as float32.
class LinearWeights {
 public:
  explicit LinearWeights(const nlohmann::json& file);
  /// Those that a case lists.
  std::map<std::string, weights::TensorView> views(const nlohmann::json& names) const;

 private:
  std::map<std::string, std::vector<int64_t>> shapes_;
  std::map<std::string, std::vector<float>> values_;
};

struct LinearCase {
  std::string name;  ///< "gla5_long AbCD"
  model::ModelConfig model;
  std::map<std::string, std::vector<float>> weights;  ///< under forge's names
  nlohmann::json input_ids;                           ///< rows of ids
  nlohmann::json expected;  ///< the case: logits, loss, grads and so on under the file's names
};

/// Every case of every pair of files in vectors_dir(), in the order of their names; where it has
/// none, of those in tests/vectors.
std::vector<LinearCase> linear_cases();

/// Gradients by forge's names as the file has them: those of matrices that lie on one another,
/// too. The values of the weight at `name` of the file.
std::vector<double> under_file_name(const model::ModelConfig& model,
                                    const std::map<std::string, std::vector<double>>& ours,
                                    const std::string& name);

}  // namespace forge::tests
