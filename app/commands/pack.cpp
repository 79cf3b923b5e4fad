#include <functional>
#include <iostream>
#include <set>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
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

/// The templates that the run's config reads now, by their paths below the workspace. Those that
/// can no longer be found become `notes`: the run's config.json is complete without them.
std::vector<std::pair<std::string, fs::path>> current_templates(const Context& context,
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
  // Templates of other projects are known from the values that they set. A run that came from
  // elsewhere may name any file here, and who packs it passes that on.
  const bool is_own = !record.is_imported() && is_same_path(record.workspace, root);
  const nlohmann::json origins =
      is_own ? read_json_file(folder.origin_file()) : nlohmann::json::object();
  for (const nlohmann::json& origin : origins) {
    const auto at = origin.is_object() ? origin.find("at") : origin.end();
    if (at == origin.end() || !at->is_string()) continue;
    const std::string place = at->get<std::string>();
    const fs::path file = (root / place.substr(0, place.find(':'))).lexically_normal();
    const fs::path below = file.lexically_relative(root);
    if (file.extension() == ".yaml" && !below.empty() && *below.begin() != "..") add(file);
  }
  try {
    const project::Project project = project::load_project(
        context.workspace(), root / record.project, context.host_environment());
    const auto rendered = project::render_config(
        project, project::config_of(project, record.config), context.host_environment(), {});
    add(project.folder / "meta.yaml");
    for (const jinja::LoadedTemplate& loaded : rendered.templates) add(loaded.source->name);
  } catch (const Error& problem) {
    notes.push_back("templates not packed: " + problem.message());
  }
  return files;
}

/// Shows the progress of work on many bytes, and ends it after a Ctrl-C that is counted, so that it
/// removes what it has begun.
CountProgress show_until(const Interrupts& interrupts, LateProgress& progress) {
  return [&](size_t done, size_t all) {
    if (interrupts.count() > 0) throw Error("interrupted", ExitCode::failed);
    progress(done, all);
  };
}

int pack(const Context& context, const PackCommand& options) {
  const run::RunFolder folder = context.find_run(options.name);
  std::vector<std::string> notes;
  manage::PackOptions pack;
  pack.file = options.file.empty() ? fs::path(folder.id() + ".tar.zst") : fs::path(options.file);
  // A link that waits there, which a folder may bring, would lead elsewhere.
  std::error_code unknown;
  if (fs::exists(fs::symlink_status(pack.file, unknown))) {
    throw Error("'" + shown_path(pack.file) + "' exists already",
                "choose another file with -o",
                ExitCode::failed);
  }
  pack.checkpoints = options.checkpoints;
  pack.forge_version = FORGE_VERSION;
  if (folder.record().imported_from.empty())
    pack.templates = current_templates(context, folder, notes);
  const Interrupts interrupts;
  LateProgress progress("packing", LateProgress::Counts::bytes);
  pack.progress = show_until(interrupts, progress);
  const manage::Packed packed = manage::pack_run(folder, pack);
  notes.insert(notes.end(), packed.notes.begin(), packed.notes.end());
  for (const std::string& note : notes) std::cerr << "note: " << tables::printable(note) << "\n";
  if (options.json)
    return print_json(nlohmann::json{{"run", folder.id()},
                                     {"file", fs::absolute(pack.file).string()},
                                     {"bytes", packed.bytes},
                                     {"files", packed.files},
                                     {"notes", notes}});
  std::cout << "packed " << tables::printable(folder.id()) << " into " << shown_path(pack.file)
            << ": " << packed.files << " files, " << human_bytes(double(packed.bytes)) << "\n";
  return 0;
}

struct ImportOptions {
  std::string origin;
  bool json = false;
};

int import(const Context& context, const ImportOptions& options) {
  const fs::path runs_dir = context.runs_dir();
  const Interrupts interrupts;
  LateProgress progress("importing", LateProgress::Counts::bytes);
  const auto workspace = context.own_workspace();
  const manage::ImportResult imported =
      manage::import_packed_run(options.origin,
                                runs_dir,
                                show_until(interrupts, progress),
                                workspace ? workspace->root : fs::path());
  for (const std::string& note : imported.notes)
    std::cerr << "note: " << tables::printable(note) << "\n";
  if (options.json) {
    const auto missing =
        json_list(imported.missing, [](const auto& need) { return to_json(need); });
    return print_json(nlohmann::json{{"run", imported.folder.id()},
                                     {"folder", imported.folder.path().string()},
                                     {"made", imported.created},
                                     {"status", run::name_of(imported.folder.state())},
                                     {"missing", missing},
                                     {"notes", imported.notes}});
  }
  std::cout << (imported.created ? "imported " : "already imported: ")
            << tables::printable(options.origin) << "\n"
            << "  run      " << tables::printable(imported.folder.id()) << "\n"
            << "  status   " << run::name_of(imported.folder.state()) << "\n"
            << "  folder   " << shown_path(imported.folder.path()) << "\n";
  for (const manage::RequiredData& need : imported.missing) {
    std::cout << "  missing  " << tables::printable(need.path) << "\n"
              << "           " << tables::printable(need.how) << "\n";
  }
  return 0;
}

}  // namespace

void add_pack(const Command& app) {
  const auto [command, options] =
      app.add_command("pack", "Pack everything that reproduces a run", pack);
  command
      .details(
          "Writes a tar file compressed with zstd: the run's folder (config with origins, events, "
          "environment, tokenizer, weights), the current templates of its config, and pack.json "
          "with the command, the revision, data fingerprints and a hash of every file. 'tar --zstd "
          "-xf' unpacks it.")
      .examples(
          "forge pack train_llama-deb27d\n"
          "forge pack train_llama-deb27d -o ~/llama.tar.zst --checkpoints")
      .see_also("forge import");
  add_run_argument(command, options.name);
  command.add_option("-o,--output <FILE>", options.file, "File to write [default: RUN.tar.zst]");
  command.add_flag(
      "--checkpoints", options.checkpoints, "Include every checkpoint with its optimizer state");
  add_json_option(command, options.json);
}

void add_import(const Command& app) {
  const auto [command, options] =
      app.add_command("import", "Import a run from a pack or another runs folder", import);
  command
      .details(
          "Nothing is overwritten. Hashes are verified, damaged checkpoints are skipped, and "
          "missing data is listed.")
      .examples(
          "forge import train_llama-deb27d.tar.zst\n"
          "forge import /mnt/cluster/runs/train_llama-deb27d")
      .see_also("forge pack, forge import-hf, forge import-lingua");
  command.add_option("PATH", options.origin, "Pack, or folder of a run").required();
  add_json_option(command, options.json);
}

}  // namespace forge::app
