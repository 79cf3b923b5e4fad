#pragma once

#include <string>

#include "core/config/check.h"
#include "core/config/experiment.h"
#include "core/config/reader.h"
#include "core/yaml/yaml.h"

/// Elements of model.layers with settings of their own, laid upon the section `model`:
///     model.layers: [gdn2, {mixer: attention, attention: {window: 128}, canon: {set: A}}]
namespace forge::config {

/// Reads such an element, a mapping. Throws Error at an unknown key, a wrong value, or a section
/// that is neither that of the mixer nor mlp nor canon.
model::LayerSpec read_layer(const yaml::Node& node,
                            const std::string& path,
                            const ReadOptions& options);

/// Makes the model of each layer that has settings.
void lay_layer_settings(ModelConfig& model);

/// Checks and completes the layers with settings of a model that is complete but for them.
/// `written` is the model before it was completed: what followed from the model's keys follows anew
/// from the layer's. The settings become all that differs from the model's.
void complete_layer_settings(Draft& draft,
                             const ModelConfig& written,
                             const ProblemSink& on_problem);

}  // namespace forge::config
