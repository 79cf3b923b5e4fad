#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/run/run_folder.h"

namespace forge::run {

/// Notes and tags that people add to a run: remarks.json. They are not part of its identity.
struct Annotations {
  bool archived = false;  ///< lists and tables leave it out
  std::string note;
  std::vector<std::string> tags;  ///< sorted, each once
};

/// Empty without a file. Throws Error where the file cannot be read.
Annotations read_annotations(const RunFolder& folder);

/// Replaces the file, or removes it when there are no annotations.
void write_annotations(const RunFolder& folder, Annotations remarks);

/// Throws Error for a text that is not a tag: letters, digits, '-', '_', '.', '/' and ':', at
/// most 64.
void check_tag(const std::string& tag);

nlohmann::json to_json(const Annotations& remarks);

}  // namespace forge::run
