#include "core/config/resolve.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/config/check.h"
#include "core/config/document.h"
#include "core/config/experiment.h"
#include "core/config/keys.h"
#include "core/config/own_blocks.h"
#include "core/config/tree.h"

namespace forge::config {
namespace {

using yaml::Entry;
using yaml::Node;
using yaml::NodePtr;

/// A document taken apart into what the layers need.
struct DocumentParts {
  NodePtr sections;                     ///< root mapping without profiles and dotted keys
  NodePtr profiles;                     ///< mapping of profiles, or null
  std::vector<Assignment> assignments;  ///< dotted keys, in order
};

DocumentParts split_document(const NodePtr& root, const ProblemSink& on_problem) {
  DocumentParts document;
  auto sections = std::make_shared<Node>(*root);
  sections->entries.clear();
  NodePtr profiles_only = std::make_shared<Node>(*sections);
  for (const Entry& entry : root->entries) {
    if (entry.key == "profiles") {
      profiles_only = merge(nest(entry.key, entry.key_origin, entry.value), profiles_only);
    } else if (starts_with(entry.key, "profiles.")) {
      profiles_only = merge(profiles_only, nest(entry.key, entry.key_origin, entry.value));
    } else if (!is_dotted(entry.key)) {
      sections->entries.push_back(entry);
    }
  }
  for (const Entry* entry : dotted_entries(*root)) {
    if (starts_with(entry->key, "profiles.")) continue;
    const Assignment assignment{entry->key, entry->key_origin, entry->value};
    const auto is_known = [&] { check_path(assignment); };
    if (attempt(on_problem, Problem::Kind::unknown_key, is_known))
      document.assignments.push_back(assignment);
  }
  document.sections = sections;
  if (const Entry* profiles = profiles_only->find_entry("profiles"))
    document.profiles = profiles->value;
  return document;
}

void apply(Draft& draft,
           const Assignment& assignment,
           const std::string& layer,
           const ProblemSink& on_problem) {
  apply_layer(draft,
              *nest(assignment.path, assignment.path_origin, assignment.value),
              layer,
              layer == command_line_layer,
              on_problem);
}

void apply_profile(Draft& draft, const Entry& profile, const ProblemSink& on_problem) {
  if (profile.value->is_null()) return;
  if (const Entry* inner = profile.value->find_entry("profile")) {
    throw Error("a profile cannot choose a profile", inner->key_origin);
  }
  apply_layer(draft, *profile.value, "profile " + profile.key, false, on_problem);
}

/// The name that the draft's `profile` becomes.
std::string chosen_profile(const Draft& draft, const Node* profiles, bool backend_has_gpu) {
  const std::string& wanted = draft.experiment.profile;
  std::vector<std::string> known;
  if (profiles) known = texts_of(profiles->entries, &Entry::key);
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
void check_profiles(const Draft& draft, const Node* profiles, const ProblemSink& on_problem) {
  if (!profiles) return;
  if (!profiles->is_mapping()) {
    throw Error("'profiles' is " + describe_kind(*profiles),
                profiles->origin,
                "it is a mapping of names to the keys that each profile changes");
  }
  for (const Entry& profile : profiles->entries) {
    Draft copy = draft;
    attempt(
        on_problem, Problem::Kind::wrong_value, [&] { apply_profile(copy, profile, on_problem); });
  }
}

/// Makes the profile that is chosen part of the draft.
void choose_profile(Draft& draft, const Node* profiles, const ResolveOptions& options) {
  const ProblemSink& on_problem = options.on_problem;
  check_profiles(draft, profiles, on_problem);
  const std::string profile = chosen_profile(draft, profiles, options.backend_has_gpu);
  draft.experiment.profile = profile;
  const Entry* chosen = profiles ? profiles->find_entry(profile) : nullptr;
  if (!chosen) return;
  // What is wrong in it is known by now.
  const ProblemSink heard = on_problem ? [](const Problem&) {} : ProblemSink();
  attempt(heard, Problem::Kind::wrong_value, [&] { apply_profile(draft, *chosen, heard); });
}

Draft lay_layers(const DocumentParts& document, const ResolveOptions& options) {
  std::vector<Assignment> overrides;
  for (const std::string& text : options.overrides) overrides.push_back(parse_override(text));

  const ProblemSink& on_problem = options.on_problem;
  Draft draft = new_draft();
  draft.document = document.sections->origin;
  apply_layer(draft, *document.sections, config_layer, false, on_problem);
  for (const Assignment& assignment : overrides) {
    if (assignment.path == "profile") apply(draft, assignment, command_line_layer, on_problem);
  }
  attempt(on_problem, Problem::Kind::wrong_value, [&] {
    choose_profile(draft, document.profiles.get(), options);
  });
  for (const Assignment& assignment : document.assignments) {
    apply(draft, assignment, config_layer, on_problem);
  }
  for (const Assignment& assignment : overrides) {
    if (assignment.path != "profile") apply(draft, assignment, command_line_layer, on_problem);
  }
  return draft;
}

/// What is missing is most often what was misspelt or misread: that is said once.
ProblemSink without_consequences(const ProblemSink& on_problem) {
  if (!on_problem) return nullptr;
  const auto misread = std::make_shared<bool>(false);  // one for all copies of the function
  return [on_problem, misread](const Problem& problem) {
    if (problem.kind == Problem::Kind::missing_key && *misread) return;
    *misread = *misread || problem.kind == Problem::Kind::unknown_key ||
               problem.kind == Problem::Kind::wrong_value;
    on_problem(problem);
  };
}

bool is_command_line(const SourceSpan& where) {
  return where && where.source->name == command_line_layer;
}

/// What hinders only a run is kept for the one who wants to run the config. A path typed just now
/// is meant to be there now.
ProblemSink keeping_obstacles(const ProblemSink& on_problem, std::vector<Error>& obstacles) {
  return [&on_problem, &obstacles](const Problem& problem) {
    if (on_problem) {
      on_problem(problem);
    } else if (problem.only_hinders_running() && !is_command_line(problem.error.where())) {
      obstacles.push_back(problem.error);
    } else {
      throw problem.error;
    }
  };
}

nlohmann::json model_only(const nlohmann::json& json) {
  return {{"name", json.at("name")},
          {"description", json.at("description")},
          {"model", json.at("model")}};
}

}  // namespace

ResolvedConfig resolve(const project::Project& project,
                       const std::string& config_name,
                       const ResolveOptions& options,
                       const jinja::Variables& variables) {
  return resolve(read_document(project, config_name, options.host_environment, variables), options);
}

ResolvedConfig resolve(const Document& document, const ResolveOptions& given_options) {
  ResolveOptions options = given_options;
  options.on_problem = without_consequences(options.on_problem);
  const project::Project& project = document.project;
  const DocumentParts parts = split_document(require_experiment(document), options.on_problem);
  Draft draft = lay_layers(parts, options);
  ResolvedConfig resolved;
  resolved.trains = parts.sections->find("train") != nullptr;
  const PathBases bases = {
      options.host_environment.working_directory,
      project.folder,
      backend_folders(project.folder, project.workspace_root, options.host_environment.library_dir),
      own_block_folders(project.folder, project.workspace_root),
      options.block_texts};
  const ProblemSink sink = keeping_obstacles(options.on_problem, resolved.obstacles);
  if (resolved.trains) {
    check_and_complete(draft, bases, sink);
  } else {
    check_and_complete_model(draft, bases, sink);
  }

  resolved.project = project.path;
  resolved.workspace = project.workspace_root.string();
  resolved.config_name = document.config_name;
  resolved.experiment = draft.experiment;
  resolved.json = to_json(draft.experiment);
  if (!resolved.trains) resolved.json = model_only(resolved.json);
  resolved.origins = std::move(draft.origins);
  return resolved;
}

bool chooses_profile_by_device(const Document& document, const ResolveOptions& options) {
  const DocumentParts parts = split_document(require_experiment(document), nullptr);
  if (!parts.sections->find("train") || !parts.profiles || !parts.profiles->find("quick"))
    return false;
  ResolveOptions on_gpu = options, on_cpu = options;
  on_gpu.backend_has_gpu = true;
  on_cpu.backend_has_gpu = false;
  return lay_layers(parts, on_gpu).experiment.profile !=
         lay_layers(parts, on_cpu).experiment.profile;
}

std::vector<std::string> profiles_of(const Document& document) {
  const NodePtr profiles = split_document(require_experiment(document), nullptr).profiles;
  std::vector<std::string> names = {"full"};
  if (!profiles) return names;
  for (const Entry& profile : profiles->entries) {
    if (profile.key != "full") names.push_back(profile.key);
  }
  return names;
}

void settle_for_device(ResolvedConfig& resolved, const std::string& device_type) {
  TrainConfig& train = resolved.experiment.train;
  if (train.deterministic) return;
  train.deterministic = train.is_deterministic(device_type);
  resolved.json.at("train").at("deterministic") = *train.deterministic;
  resolved.origins.at("train.deterministic").set_by.text = *train.deterministic ? "true" : "false";
}

void settle_processes(ResolvedConfig& resolved, int devices) {
  Experiment& experiment = resolved.experiment;
  if (!experiment.parallel.processes.is_auto()) return;
  int count = 1;
  while (2 * count <= std::min(devices, experiment.train.gradient_slots)) count *= 2;
  experiment.parallel.processes.count = count;
  resolved.origins.at("parallel.processes").set_by.text = std::to_string(count);
  const nlohmann::json whole = to_json(experiment);
  resolved.json.erase("parallel");
  if (whole.contains("parallel")) resolved.json["parallel"] = whole.at("parallel");
}

void require_no_obstacles(const ResolvedConfig& resolved) {
  if (!resolved.obstacles.empty()) throw resolved.obstacles.front();
}

}  // namespace forge::config
