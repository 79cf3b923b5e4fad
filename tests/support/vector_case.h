#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/config/experiment.h"

/// Reading the reference vectors: no case is special, every option comes from its own config.
namespace forge::tests {

/// Folder of the reference vectors: FORGE_VECTORS where set, else tests/vectors.
std::filesystem::path vectors_dir();

/// Path of a file that cases share, such as the weights: in vectors_dir(), else in tests/vectors,
/// for a folder that holds cases alone.
std::filesystem::path shared_vector_file(const std::string& name);

struct VectorCase {
  model::ModelConfig model;
  config::ZLossConfig z_loss;
};

/// The `config` of a case. Throws Error naming a key that is missing or unknown and a value that
/// forge does not have: a case must not pass because a part of it was not understood.
VectorCase read_vector_case(const nlohmann::json& config);

/// The `config` of a case of a linear family: gla5, gdn2 or mamba2. Throws as read_vector_case
/// does.
model::ModelConfig read_linear_case(const nlohmann::json& config);

/// Name under which the shared weight file keeps a weight of this model: per-head norms have
/// entries of their own there.
std::string vector_weight_name(const std::string& name, const model::ModelConfig& model);

}  // namespace forge::tests
