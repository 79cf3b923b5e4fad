#pragma once

#include "core/yaml/node.h"

namespace forge::config {

/// Whether a config's document is written in forge's own schema (an experiment or a model), rather
/// than a graph of calls for another program to make.
bool is_experiment(const yaml::Node& root);

/// Throws Error where a document is a graph of calls, with what forge can do with it.
void require_experiment(const yaml::Node& root);

}  // namespace forge::config
