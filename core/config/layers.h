#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/config/experiment.h"
#include "core/config/reader.h"
#include "core/yaml/yaml.h"

namespace forge::config {

/// Names of the layers that make a config, in the order in which they are applied. A profile's
/// layer is called "profile NAME".
inline constexpr const char* default_layer = "default";
inline constexpr const char* config_layer = "config";
inline constexpr const char* command_line_layer = "command line";

/// One value that somebody gave a key.
struct Setting {
  std::string layer;
  std::string text;          ///< the value as written
  SourceSpan origin;         ///< unknown for a default
  std::string derived_from;  ///< the key that this one follows from, "" where it was given itself
  std::string project_folder = {};  ///< of another project, whose config gave it
};

/// Who gave a key its value, and what that replaced.
struct Origin {
  Setting set_by;
  std::vector<Setting> overrode;  ///< nearest first

  /// Sets a new value; `overrode` keeps the old one unless it is a default.
  void replace(Setting setting);
};
using Origins = std::map<std::string, Origin>;  ///< by dotted path, for every leaf of the schema

/// An experiment that takes shape layer by layer.
struct Draft {
  Experiment experiment;
  Origins origins;
  SourceSpan document;  ///< where the config begins: the place of what is missing
};

/// All defaults.
Draft new_draft();

/// Reads a partial tree over the draft. Throws Error at an unknown key or a wrong value. Two pairs
/// of keys exclude each other, and a layer that gives one of a pair takes back the other where an
/// earlier layer gave it: max_steps and max_tokens; data.path, which means files of one's own, and
/// a data.source other than text. Keys of data.sources make data.source a mixture.
void apply_layer(Draft& draft,
                 const yaml::Node& tree,
                 const std::string& layer,
                 bool plain_is_text = false,
                 const ProblemSink& on_problem = nullptr);

/// Gives the keys of every source and block that has a name the origins of defaults, where they
/// have none.
void add_defaults_of_all_named(Draft& draft);

/// Gives a key a value that follows from another key, whose origin it shares.
void derive(Draft& draft,
            const std::string& path,
            const std::string& from,
            const std::string& text);

/// {"train.batch_size": {"value", "from", "at", "derived_from", "overrode": [...]}, …} for
/// config.origin.json.
nlohmann::json to_json(const Origins& origins);

}  // namespace forge::config
