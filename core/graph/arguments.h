#pragma once

#include <vector>

#include "core/yaml/node.h"

namespace forge::graph {

/// Arguments of a call as the text gives them.
struct Arguments {
  std::vector<yaml::NodePtr> positional;
  std::vector<yaml::Entry> named;
};

/// Reads what stands behind a constructor tag by Forgather's rules: a sequence is positional; of a
/// mapping argN becomes positional by the order of N and the rest named, unless its only keys are
/// `args` and/or `kwargs`, which then are the positional and the named ones; a scalar is one
/// argument a character. Throws Error where a name is no string or args and kwargs have the wrong
/// shape.
Arguments read_arguments(const yaml::Node& call);

}  // namespace forge::graph
