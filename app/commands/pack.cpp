#include <iostream>
#include <set>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/manage/pack.h"
#include "core/project/project.h"
#include "core/run/open_model.h"
#include "core/run/run_folder.h"

namespace forge::app {
namespace {

struct PackCommand {
  std::string name;
  std::string file;
  bool checkpoints = false;
  bool json = false;
};

/// The templates that the run's config reads now, by their paths below the workspace. What cannot
/// be found any more is said in `notes`: the run's config.json is complete without them.
std::vector<std::pair<std::string, fs::path>> templates_of(const Context& context,
                                                           const run::RunFolder& folder,
                                                           std::vector<std::string>& notes) {
  const run::RunRecord record = folder.record();
  std::vector<std::pair<std::string, fs::path>> files;
  std::set<std::string> seen;
  const fs::path& root = context.workspace().root;
  const auto add = [&](const fs::path& file) {
    const fs::path relative = fs::absolute(file).lexically_normal().lexically_relative(root);
    const bool below = !relative.empty() && *relative.begin() != "..";
    const std::string name = below ? relative.string() : "elsewhere/" + file.filename().string();
    if (fs::is_regular_file(file) && seen.insert(name).second) files.push_back({name, file});
  };
  // Those of other projects that the config draws on are named by the values that they set.
  const nlohmann::json origins = try_parse_json(read_file(folder.origin_file()));
  for (const nlohmann::json& origin : origins) {
    const auto at = origin.is_object() ? origin.find("at") : origin.end();
    if (at == origin.end() || !at->is_string()) continue;
    const std::string place = at->get<std::string>();
    const fs::path file = (root / place.substr(0, place.find(':'))).lexically_normal();
    // An imported run may name any file of this machine: only templates are packed.
    const fs::path below = file.lexically_relative(root);
    if (file.extension() == ".yaml" && !below.empty() && *below.begin() != "..") add(file);
  }
  try {
    const project::Project project =
        project::load_project(context.workspace(), root / record.project, context.surroundings());
    const auto rendered = project::render_config(
        project, project::config_of(project, record.config), context.surroundings(), {});
    add(project.folder / "meta.yaml");
    for (const jinja::LoadedTemplate& loaded : rendered.templates) add(loaded.source->name);
  } catch (const Error& problem) {
    notes.push_back("the templates are not in it: " + problem.message());
  }
  return files;
}

int pack(const Context& context, const PackCommand& options) {
  const run::RunFolder folder = run::named_run(context.runs_dir(), options.name);
  std::vector<std::string> notes;
  manage::PackOptions pack;
  pack.file = options.file.empty() ? fs::path(folder.id() + ".tar.zst") : fs::path(options.file);
  if (fs::exists(pack.file)) {
    throw Error("'" + shown_path(pack.file) + "' is there already",
                {},
                "-o names another file",
                ExitCode::failed);
  }
  pack.checkpoints = options.checkpoints;
  pack.forge_version = FORGE_VERSION;
  if (folder.record().imported_from.empty()) pack.templates = templates_of(context, folder, notes);
  const manage::Packed packed = manage::pack_run(folder, pack);
  notes.insert(notes.end(), packed.notes.begin(), packed.notes.end());
  for (const std::string& note : notes) std::cerr << "note: " << note << "\n";
  if (options.json) {
    print_json(nlohmann::json{{"run", folder.id()},
                              {"file", fs::absolute(pack.file).string()},
                              {"bytes", packed.bytes},
                              {"files", packed.files},
                              {"notes", notes}});
  } else {
    std::cout << "packed " << folder.id() << " into " << shown_path(pack.file) << ": "
              << packed.files << " files, " << human_bytes(double(packed.bytes)) << "\n";
  }
  return 0;
}

int import(const Context& context, const std::string& origin, bool json) {
  const fs::path runs_dir = context.runs_dir();
  run::make_runs_dir(runs_dir);
  const manage::ImportResult imported = manage::import_packed_run(origin, runs_dir);
  for (const std::string& note : imported.notes) std::cerr << "note: " << note << "\n";
  if (json) {
    nlohmann::json missing = nlohmann::json::array();
    for (const manage::RequiredData& need : imported.missing) missing.push_back(to_json(need));
    print_json(nlohmann::json{{"run", imported.folder.id()},
                              {"folder", imported.folder.path().string()},
                              {"made", imported.created},
                              {"status", run::name_of(imported.folder.state())},
                              {"missing", missing},
                              {"notes", imported.notes}});
    return 0;
  }
  std::cout << (imported.created ? "imported " : "imported before: ") << origin << "\n"
            << "  run      " << imported.folder.id() << "\n"
            << "  status   " << run::name_of(imported.folder.state()) << "\n"
            << "  folder   " << shown_path(imported.folder.path()) << "\n";
  for (const manage::RequiredData& need : imported.missing) {
    std::cout << "  missing  " << need.path << "\n"
              << "           " << need.how << "\n";
  }
  return 0;
}

}  // namespace

void add_pack(const Command& app, Program& program) {
  auto options = std::make_shared<PackCommand>();
  const Command command = app.add_subcommand("pack", "Put all that reproduces a run into one file");
  command.footer(
      "A tar file compressed with zstd: the run's folder (config with origins, events, "
      "environment,\n"
      "tokenizer, weights), the templates of its config as they are now, and pack.json with the\n"
      "command, the revision, fingerprints of the data and how to get it, and a hash of every "
      "file.\n"
      "'forge import' imports it elsewhere; 'tar --zstd -xf' unpacks it.\n"
      "\n"
      "Examples:\n"
      "  forge pack train_llama-deb27d\n"
      "  forge pack train_llama-deb27d -o ~/llama.tar.zst --checkpoints");
  command.add_option("RUN", options->name, "Its id or the beginning of it, or its folder")
      .required()
      .type_name("RUN|DIR");
  command.add_option("-o,--output", options->file, "The file to write; without it RUN.tar.zst")
      .type_name("FILE");
  command.add_flag(
      "--checkpoints", options->checkpoints, "Every checkpoint, with the optimizer's state");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return pack(c, *options); };
  });
}

void add_import(const Command& app, Program& program) {
  auto origin = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  const Command command =
      app.add_subcommand("import", "Import a run from a pack or from another folder of runs");
  command.footer(
      "Nothing that is here is replaced. Hashes are checked, a damaged checkpoint is left out, "
      "and\n"
      "data that the run needs and that is not here is named.\n"
      "\n"
      "Examples:\n"
      "  forge import train_llama-deb27d.tar.zst\n"
      "  forge import /mnt/cluster/runs/train_llama-deb27d\n"
      "\n"
      "'forge import-hf' reads model folders of Hugging Face, 'forge import-lingua' recipes of "
      "Lingua.");
  command.add_option("origin", *origin, "A pack, or the folder of a run")
      .required()
      .type_name("FILE|DIR");
  command.add_flag("--json", *json, "As JSON");
  command.callback([&program, origin, json] {
    program.action = [origin, json](const Context& c) { return import(c, *origin, *json); };
  });
}

}  // namespace forge::app
