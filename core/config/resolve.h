#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/block_texts.h"
#include "core/config/document.h"
#include "core/config/layers.h"
#include "core/jinja/render.h"
#include "core/project/project.h"

namespace forge::config {

struct ResolveOptions {
  std::vector<std::string> overrides;  ///< "path=value", as given to --set, in order
  bool backend_has_gpu = false;        ///< what profile `auto` turns on
  jinja::HostEnvironment host_environment = jinja::HostEnvironment::current();
  /// Of all configs that are to have one text of each block; null: each file is read anew.
  std::shared_ptr<BlockTexts> block_texts = {};
  /// Receives every mistake in keys and values. The ResolvedConfig of a config with mistakes must
  /// not be used.
  ProblemSink on_problem;
};

/// A config with nothing left open.
struct ResolvedConfig {
  std::string project;      ///< path below the workspace
  std::string workspace;    ///< its root
  std::string config_name;  ///< without ".yaml"
  bool trains = false;      ///< it has a section `train`; else it is a model to be used by others
  Experiment experiment;
  nlohmann::json
      json;         ///< the experiment, complete: config.json. Of a model: name, description, model
  Origins origins;  ///< of every leaf: config.origin.json
  /// Why it cannot be run here, though it can be looked at: a template names a file that is not
  /// there, or a tokenizer that is read has no file.
  std::vector<Error> obstacles;
};

/// Whether the device that trains the config decides which profile it has: `auto`, where the config
/// declares `quick`. Throws Error for a config that cannot be resolved.
bool chooses_profile_by_device(const Document& document, const ResolveOptions& options);

/// The profiles that a run of the document may have: `full` and those that it declares.
std::vector<std::string> profiles_of(const Document& document);

/// Gives train.deterministic, where nobody gave it, the value that it has on a device of that type,
/// "cpu" or "cuda": with it the config says all that a run's numbers depend on.
void settle_for_device(ResolvedConfig& resolved, const std::string& device_type);

/// Gives parallel.processes, where it is auto, the largest number that `devices` and
/// train.gradient_slots allow.
void settle_processes(ResolvedConfig& resolved, int devices);

/// Throws the first of the config's obstacles, where there is one.
void require_no_obstacles(const ResolvedConfig& resolved);

/// Resolves a config in layers, a later one winning key by key:
///   1. the schema's defaults
///   2. the config's document with its sub-projects expanded
///   3. its profile: `profiles: {NAME: partial tree}`. `auto` is `full` where the backend has a GPU
///      and `quick` elsewhere; `full`, where it is not declared, is the config as written, and so
///      is `auto` of a config that declares no `quick`
///   4. dotted keys at the document's root, such as `model.canon.set: AC`
///   5. the overrides of the command line
/// Then checks the whole. Throws Error at the place that is wrong; a path on the command line that
/// leads nowhere is wrong at once, one in a template hinders only a run.
ResolvedConfig resolve(const Document& document, const ResolveOptions& options);

/// The same for a config that is read for it; `variables` are for its templates.
ResolvedConfig resolve(const project::Project& project,
                       const std::string& config_name,
                       const ResolveOptions& options,
                       const jinja::Variables& variables = {});

}  // namespace forge::config
