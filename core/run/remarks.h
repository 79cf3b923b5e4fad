#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/run/run_folder.h"

namespace forge::run {

/// What people say of a run afterwards: remarks.json of its folder. No part of what the run is.
struct Remarks {
  bool archived = false;  ///< lists and tables leave it out
  std::string note;
  std::vector<std::string> tags;  ///< sorted, each once
};

/// Those of the run; none where there is no file. Throws Error where it cannot be read.
Remarks read_remarks(const RunFolder& folder);

/// Replaces the file; without any remark there is none.
void write_remarks(const RunFolder& folder, Remarks remarks);

/// Throws Error for what is no tag: letters, digits, '-', '_', '.', '/' and ':', at most 64.
void require_tag(const std::string& tag);

nlohmann::json to_json(const Remarks& remarks);

}  // namespace forge::run
