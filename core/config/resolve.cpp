#include "core/config/resolve.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/json.h"
#include "core/config/keys.h"
#include "core/config/override.h"
#include "core/config/sub_projects.h"
#include "core/config/tree.h"
#include "core/project/names.h"

namespace forge::config {
namespace {

using yaml::Entry;
using yaml::Node;
using yaml::NodePtr;

/// A document taken apart into what the layers need.
struct Document {
  NodePtr sections;                     ///< root mapping without profiles and dotted keys
  NodePtr profiles;                     ///< mapping of profiles, or null
  std::vector<Assignment> assignments;  ///< dotted keys, in order
};

bool reaches_into_profiles(const std::string& path) { return starts_with(path, "profiles."); }

Document take_apart(const NodePtr& root) {
  Document document;
  auto sections = std::make_shared<Node>(*root);
  sections->entries.clear();
  NodePtr profiles_only = std::make_shared<Node>(*sections);
  for (const Entry& entry : root->entries) {
    const Assignment assignment{entry.key, entry.key_origin, entry.value};
    if (entry.key == "profiles") {
      profiles_only = merge(nest(entry.key, entry.key_origin, entry.value), profiles_only);
    } else if (reaches_into_profiles(entry.key)) {
      profiles_only = merge(profiles_only, nest(entry.key, entry.key_origin, entry.value));
    } else if (is_dotted(entry.key)) {
      check_path(assignment);
      document.assignments.push_back(assignment);
    } else {
      sections->entries.push_back(entry);
    }
  }
  document.sections = sections;
  if (const Entry* profiles = profiles_only->find_entry("profiles"))
    document.profiles = profiles->value;
  return document;
}

void apply(Draft& draft, const Assignment& assignment, const std::string& layer) {
  apply_layer(draft,
              *nest(assignment.path, assignment.path_origin, assignment.value),
              layer,
              layer == command_line_layer);
}

void apply_profile(Draft& draft, const Entry& profile) {
  if (profile.value->is_null()) return;
  if (const Entry* inner = profile.value->find_entry("profile")) {
    throw Error("a profile cannot choose a profile", inner->key_origin);
  }
  apply_layer(draft, *profile.value, "profile " + profile.key);
}

/// The name that the draft's `profile` becomes.
std::string chosen_profile(const Draft& draft, const Node* profiles, bool backend_has_gpu) {
  const std::string& wanted = draft.experiment.profile;
  std::vector<std::string> known;
  if (profiles) {
    for (const Entry& entry : profiles->entries) known.push_back(entry.key);
  }
  const auto declared = [&](const std::string& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  };
  if (wanted == "auto") return !backend_has_gpu && declared("quick") ? "quick" : "full";
  if (wanted == "full" || declared(wanted)) return wanted;
  if (!declared("full")) known.push_back("full");
  known.push_back("auto");
  throw Error("unknown profile '" + wanted + "'",
              draft.origins.at("profile").set_by.origin,
              "the config has " + join(known, ", "));
}

/// Reads every profile over a copy, so that a mistake in one that is not used now shows too.
void check_profiles(const Draft& draft, const Node* profiles) {
  if (!profiles) return;
  if (!profiles->is_mapping()) {
    throw Error("'profiles' is " + describe_kind(*profiles),
                profiles->origin,
                "it is a mapping of names to the keys that each profile changes");
  }
  for (const Entry& profile : profiles->entries) {
    Draft copy = draft;
    apply_profile(copy, profile);
  }
}

Draft lay_layers(const Document& document, const ResolveOptions& options) {
  std::vector<Assignment> overrides;
  for (const std::string& text : options.overrides) overrides.push_back(parse_override(text));

  Draft draft = new_draft();
  draft.document = document.sections->origin;
  apply_layer(draft, *document.sections, config_layer);
  for (const Assignment& assignment : overrides) {
    if (assignment.path == "profile") apply(draft, assignment, command_line_layer);
  }
  const Node* profiles = document.profiles.get();
  check_profiles(draft, profiles);
  const std::string profile = chosen_profile(draft, profiles, options.backend_has_gpu);
  if (profiles && profiles->find(profile)) apply_profile(draft, *profiles->find_entry(profile));
  draft.experiment.profile = profile;

  for (const Assignment& assignment : document.assignments) apply(draft, assignment, config_layer);
  for (const Assignment& assignment : overrides) {
    if (assignment.path != "profile") apply(draft, assignment, command_line_layer);
  }
  return draft;
}

nlohmann::json model_only(const nlohmann::json& json) {
  return {{"name", json.at("name")},
          {"description", json.at("description")},
          {"model", json.at("model")}};
}

}  // namespace

ResolvedConfig resolve(const project::Project& project,
                       const std::string& config_name,
                       const ResolveOptions& options) {
  const project::Config& config = project::config_of(project, config_name);
  const NodePtr root = load_document(project, config.name, options.surroundings, options.variables);
  const Document document = take_apart(root);
  Draft draft = lay_layers(document, options);
  ResolvedConfig resolved;
  resolved.trains = document.sections->find("train") != nullptr;
  if (resolved.trains) {
    check_and_complete(draft, {options.surroundings.working_directory, project.folder});
  } else {
    check_and_complete_model(draft);
  }

  resolved.project = project.path;
  resolved.config_name = config.name;
  resolved.experiment = draft.experiment;
  resolved.json = to_json(draft.experiment);
  if (!resolved.trains) resolved.json = model_only(resolved.json);
  resolved.origins = std::move(draft.origins);
  return resolved;
}

}  // namespace forge::config
