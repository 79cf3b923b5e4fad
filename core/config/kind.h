#pragma once

#include "core/yaml/node.h"

namespace forge::config {

/// Whether a config's document is written in forge's own schema (an experiment or a model), rather
/// than a graph of calls for another program to make.
bool is_experiment(const yaml::Node& root);

}  // namespace forge::config
