#pragma once

#include <optional>

#include "core/huggingface/config_keys.h"
#include "core/huggingface/model_config.h"

/// config.json of the released linear models (PhysicsLM4: GLACanon, GatedDeltaNetCanon and
/// Mamba2Canon). core/model/weights/release_names.h has the names of their weights.
namespace forge::huggingface {

/// The released architecture whose files can hold the model as far as its layers say; none for
/// attention and hybrids.
std::optional<Architecture> released_architecture(const model::ModelConfig& model);
bool is_released_linear(Architecture architecture);

/// The keys of the architecture's config.json that follow from the model. What they cannot say
/// shows when they are read back.
void write_release_keys(const model::ModelConfig& model, nlohmann::ordered_json& json);

/// The model that the keys describe, before it is completed. Throws Error naming the key.
model::ModelConfig read_release_keys(ConfigKeys& keys,
                                     Architecture architecture,
                                     std::vector<std::string>& notes);

}  // namespace forge::huggingface
