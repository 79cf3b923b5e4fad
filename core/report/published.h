#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/yaml/node.h"

namespace forge::report {

/// What others measured for the model of a config.
struct PublishedFigure {
  std::string config;
  std::optional<double> eval_loss;
  std::optional<double> tokens_per_second;
  std::optional<double> peak_memory_gib;
};

/// Figures to put beside one's own, with where they come from and how they were made.
struct Published {
  std::string source;
  std::string url;
  std::string setup;
  std::vector<PublishedFigure> figures;

  /// The figure of a config, or null.
  const PublishedFigure* find(const std::string& config) const;
};

/// Reads a file such as projects/canon/tables/published.yaml. Throws Error at the place of what is
/// wrong.
Published read_published(const std::string& path);
Published published_from_node(const yaml::Node& node);

}  // namespace forge::report
