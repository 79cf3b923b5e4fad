#include "core/config/backend.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/folders.h"
#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/fields.h"
#include "core/config/keys.h"
#include "core/config/reader.h"
#include "core/config/tree.h"
#include "core/yaml/yaml.h"

namespace forge::config {
namespace {

constexpr const char* declaration_file = "backend.yaml";
constexpr const char* external_keys[] = {
    "external.command", "external.working_directory", "external.environment"};

/// What backend.yaml holds.
struct Declaration {
  std::string description;
  ExternalConfig external;
};

template <class Visitor>
void fields(Visitor& visit, Declaration& d) {
  visit.field("description", d.description, "one line for listings");
  visit.field("command", d.external.command, "program and arguments, a list", required());
  visit.field("working_directory",
              d.external.working_directory,
              "where it is started, from this file's folder; empty: that folder");
  visit.field("environment", d.external.environment, "NAME=VALUE, a list");
}

bool is_forges_own(const std::string& name) {
  return name == own_backend || name == external_backend;
}

DeclaredBackend read_declaration(const fs::path& file) {
  DeclaredBackend backend;
  backend.name = file.parent_path().filename().string();
  backend.file = file;
  ReadOptions options;
  options.on_leaf = [&](const std::string& path, const yaml::Entry& entry) {
    backend.origins["external." + path].set_by = {
        "backend " + backend.name, short_text(*entry.value), entry.value->origin, ""};
  };
  const yaml::NodePtr root = yaml::parse_file(shown_path(file));
  const Declaration declaration = read_fields<Declaration>(*root, options);
  if (is_forges_own(backend.name) || !is_allowed_name(backend.name)) {
    throw Error(
        "a backend cannot be called '" + backend.name + "'",
        root->origin,
        std::string("rename its folder: ") + allowed_names + "; libtorch and external are taken");
  }
  backend.description = declaration.description;
  backend.external = declaration.external;
  const fs::path folder = fs::absolute(file).parent_path();
  backend.external.working_directory =
      (folder / declaration.external.working_directory / "").lexically_normal().parent_path();
  for (const char* key : external_keys) {
    Setting& setting = backend.origins[key].set_by;
    if (setting.layer.empty())
      setting = {
          "backend " + backend.name, "", backend.origins.at(external_keys[0]).set_by.origin, ""};
  }
  return backend;
}

/// One whose file is wrong is listed with what is wrong, and hides no other one.
DeclaredBackend read_or_explain(const std::string& name, const fs::path& file) {
  try {
    return read_declaration(file);
  } catch (const Error& problem) {
    DeclaredBackend wrong;
    wrong.name = name;
    wrong.file = file;
    wrong.problem = describe(problem);
    return wrong;
  }
}

std::vector<fs::path> declarations_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& entry : required_entries(folder)) {
    if (is_file(entry / declaration_file)) files.push_back(entry / declaration_file);
  }
  return files;
}

/// The declaration nearest to the project; every other one may be wrong without harm.
DeclaredBackend find_declared(const std::string& name, const Draft& draft, const PathBases& bases) {
  std::vector<std::string> known = {own_backend, external_backend};
  for (const fs::path& folder : bases.backends) {
    for (const fs::path& file : declarations_in(folder)) {
      const std::string declared = file.parent_path().filename().string();
      if (declared == name) return read_declaration(file);
      known.push_back(declared);
    }
  }
  const std::string near = did_you_mean(name, known);
  std::sort(known.begin() + 2, known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  throw complaint(draft,
                  {"backend"},
                  "unknown backend '" + name + "'",
                  near.empty() ? "backends: " + join(known, ", ") : near);
}

/// Whether the key was given by the layer that chose the backend, or a later one.
bool is_for_this_backend(const Draft& draft, const char* key) {
  const Setting& setting = draft.origins.at(key).set_by;
  return setting.layer != default_layer &&
         rank(setting) >= rank(draft.origins.at("backend").set_by);
}

void take(Draft& draft, const DeclaredBackend& declared) {
  ExternalConfig& external = draft.experiment.external;
  const auto replace = [&](const char* key, auto& value, const auto& declared_value) {
    if (is_for_this_backend(draft, key)) return;
    value = declared_value;
    draft.origins.at(key).replace(declared.origins.at(key).set_by);
  };
  replace(external_keys[0], external.command, declared.external.command);
  // The declared one is absolute, which is what it stays.
  replace(external_keys[1], external.working_directory, declared.external.working_directory);
  replace(external_keys[2], external.environment, declared.external.environment);
}

void refuse_external_keys(Draft& draft) {
  for (const char* key : external_keys)
    refuse_unused(draft,
                  key,
                  "backend",
                  "has no meaning where backend is libtorch",
                  "set backend external, or the name of a declared backend");
}

void check_command(const Draft& draft) {
  const ExternalConfig& external = draft.experiment.external;
  const auto holds_nul = [](const std::string& text) {
    return text.find('\0') != std::string::npos;
  };
  if (external.command.empty() || external.command[0].empty()) {
    throw complaint(draft,
                    {"backend", "external.command"},
                    "external.command names no program",
                    "for example external.command: [/usr/bin/python3, worker.py]");
  }
  if (std::any_of(external.command.begin(), external.command.end(), holds_nul)) {
    throw complaint(draft, {"external.command"}, "external.command holds a NUL byte");
  }
  for (const std::string& entry : external.environment) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos && equals > 0 && !holds_nul(entry)) continue;
    throw complaint(draft,
                    {"external.environment"},
                    "external.environment: '" + entry + "' is not NAME=VALUE",
                    "for example external.environment: [OMP_NUM_THREADS=2]");
  }
}

void complete_working_directory(Draft& draft, const PathBases& bases) {
  std::string& folder = draft.experiment.external.working_directory;
  if (folder.empty()) folder = bases.project_folder.string();
  const fs::path meant = meant_path(draft.origins.at(external_keys[1]).set_by, folder, bases);
  if (!is_folder(meant)) {
    throw complaint(
        draft, {"external.working_directory"}, "no folder " + shown_path(meant), "name one");
  }
  folder = meant.string();
}

}  // namespace

std::vector<fs::path> backend_folders(const fs::path& project,
                                      const fs::path& workspace_root,
                                      const fs::path& library_dir) {
  std::vector<fs::path> folders;
  const fs::path roots[] = {
      project, workspace_root, library_dir.empty() ? fs::path() : library_dir.parent_path()};
  for (const fs::path& root : roots) {
    const fs::path folder = root / "backends";
    if (!root.empty() && std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(folder);
  }
  return folders;
}

std::vector<DeclaredBackend> declared_backends(const std::vector<fs::path>& folders) {
  std::vector<DeclaredBackend> backends;
  for (const fs::path& folder : folders) {
    for (const fs::path& file : declarations_in(folder)) {
      const std::string name = file.parent_path().filename().string();
      const auto is_same = [&](const DeclaredBackend& other) { return other.name == name; };
      if (std::none_of(backends.begin(), backends.end(), is_same))
        backends.push_back(read_or_explain(name, file));
    }
  }
  std::sort(backends.begin(), backends.end(), [](const auto& a, const auto& b) {
    return a.name < b.name;
  });
  return backends;
}

void complete_backend(Draft& draft, const PathBases& bases) {
  const std::string& name = draft.experiment.backend;
  if (name == own_backend) return refuse_external_keys(draft);
  if (name != external_backend) take(draft, find_declared(name, draft, bases));
  check_command(draft);
  complete_working_directory(draft, bases);
}

}  // namespace forge::config
