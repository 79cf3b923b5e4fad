#include <algorithm>
#include <iostream>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/text.h"
#include "core/manage/run_edits.h"
#include "core/run/annotations.h"
#include "core/run/open_model.h"

namespace forge::app {
namespace {

nlohmann::json annotations_json(const run::RunFolder& folder, const run::Annotations& annotations) {
  nlohmann::json json = to_json(annotations);
  json["run"] = folder.id();
  return json;
}

struct ArchiveOptions {
  RunSelector runs;
  bool restore = false;
  bool json = false;
};

int archive(const Context& context, const ArchiveOptions& options) {
  const std::vector<run::RunFolder> folders = selected_runs(context, options.runs);
  const bool restore = options.restore, json = options.json;
  LateProgress progress(restore ? "restoring" : "archiving");
  nlohmann::json list = nlohmann::json::array();
  for (const run::RunFolder& folder : folders) {
    const run::Annotations annotations = manage::edit_annotations(
        folder, [&](run::Annotations& changed) { changed.archived = !restore; });
    list.push_back(annotations_json(folder, annotations));
    if (!json)
      std::cout << tables::printable(folder.id()) << (restore ? ": restored\n" : ": archived\n");
    progress(list.size(), folders.size());
  }
  if (json) print_json(list);
  if (folders.empty()) std::cerr << "no runs match\n";
  return 0;
}

struct NoteOptions {
  std::string name;
  std::vector<std::string> text;
  bool json = false;
};

/// Without a text the note is printed; an empty text removes it.
int note(const Context& context, const NoteOptions& options) {
  const run::RunFolder folder = context.find_run(options.name);
  const run::Annotations annotations =
      options.text.empty() ? run::read_annotations(folder)
                           : manage::edit_annotations(folder, [&](run::Annotations& changed) {
                               changed.note = join(options.text, " ");
                             });
  if (options.json) return print_json(annotations_json(folder, annotations));
  if (annotations.note.empty()) {
    std::cerr << tables::printable(folder.id()) << ": no note\n";
  } else {
    std::cout << tables::printable(folder.id()) << ": " << tables::printable(annotations.note)
              << "\n";
  }
  return 0;
}

struct TagOptions {
  std::string name;
  std::vector<std::string> tags;
  bool remove = false;
  bool json = false;
};

int tag(const Context& context, const TagOptions& options) {
  const run::RunFolder folder = context.find_run(options.name);
  for (const std::string& word : options.tags) run::check_tag(word);
  const run::Annotations annotations =
      manage::edit_annotations(folder, [&](run::Annotations& changed) {
        for (const std::string& word : options.tags) {
          const auto end = std::remove(changed.tags.begin(), changed.tags.end(), word);
          changed.tags.erase(end, changed.tags.end());
          if (!options.remove) changed.tags.push_back(word);
        }
      });
  if (options.json) return print_json(annotations_json(folder, annotations));
  std::cout << tables::printable(folder.id()) << ": "
            << (annotations.tags.empty() ? "no tags" : join(annotations.tags, ", ")) << "\n";
  return 0;
}

void add_archive(const Command& runs) {
  const auto [command, options] =
      runs.add_command("archive", "Hide runs from lists and tables", archive);
  command
      .details(
          "Nothing is moved: an archived run is still cached and can be named in every command.")
      .examples(
          "forge runs archive train_llama-deb27d\n"
          "forge runs archive --where \"created<2026-11-01\" --where status=completed\n"
          "forge runs --archived                          list archived runs too\n"
          "forge runs archive train_llama-deb27d --restore");
  add_run_selector(command, options.runs);
  command.add_flag("--restore", options.restore, "Restore archived runs");
  add_json_option(command, options.json);
}

void add_note(const Command& runs) {
  const auto [command, options] = runs.add_command("note", "Set or print the note of a run", note);
  command
      .examples(
          "forge runs note train_llama-deb27d \"loss spike at 400: the disk was full\"\n"
          "forge runs note train_llama-deb27d                print it\n"
          "forge runs note train_llama-deb27d \"\"             remove it")
      .see_also("forge runs show, forge runs tag");
  add_run_argument(command, options.name);
  command.add_option("TEXT", options.text, "The note; it replaces an earlier one");
  add_json_option(command, options.json);
}

void add_tag(const Command& runs) {
  const auto [command, options] =
      runs.add_command("tag", "Add, remove or print the tags of a run", tag);
  command
      .examples(
          "forge runs tag train_llama-deb27d paper baseline\n"
          "forge runs --where tag=paper\n"
          "forge runs tag train_llama-deb27d baseline --remove")
      .see_also("forge runs show, forge runs note");
  add_run_argument(command, options.name);
  command.add_option("TAG", options.tags, "Letters, digits, '-', '_', '.', '/' and ':'");
  command.add_flag("--remove", options.remove, "Remove these tags");
  add_json_option(command, options.json);
}

std::string count_text(size_t runs) {
  return std::to_string(runs) + (runs == 1 ? " run" : " runs");
}

int64_t removal_bytes(const manage::Removal& removal) {
  int64_t bytes = 0;
  for (const manage::RemovedRun& run : removal.runs) bytes += run.bytes;
  return bytes;
}

void print_runs(const manage::Removal& removal) {
  std::vector<std::vector<std::string>> lines;
  for (const manage::RemovedRun& run : removal.runs)
    lines.push_back({"  " + run.run, run.status, human_bytes(double(run.bytes))});
  std::cout << aligned(lines, {2});
}

struct RemoveOptions {
  RunSelector runs;
  bool force = false;
  bool json = false;
};

int remove(const Context& context, const RemoveOptions& options) {
  const std::vector<run::RunFolder> folders = selected_runs(context, options.runs);
  if (folders.empty()) {
    std::cerr << "no runs match; nothing removed\n";
    if (options.json) std::cout << "null\n";
    return 0;
  }
  LateProgress progress("removing");
  const manage::Removal removal = manage::remove_runs(
      context.runs_dir(), folders, context.command_line(), progress.reporter(), options.force);
  if (options.json) return print_json(to_json(removal));
  std::cout << "removed " << count_text(removal.runs.size()) << ", "
            << human_bytes(double(removal_bytes(removal))) << "\n";
  print_runs(removal);
  std::cerr << "'forge runs undo' restores " << (folders.size() == 1 ? "it" : "them")
            << "; 'forge gc' frees the space after 7 days\n";
  return 0;
}

int list_removed(const Context& context, bool json) {
  const std::vector<manage::Removal> removals = manage::list_removals(context.runs_dir());
  if (json)
    return print_json(json_list(removals, [](const auto& removal) { return to_json(removal); }));
  if (removals.empty()) std::cerr << "no removed runs to restore\n";
  for (const manage::Removal& removal : removals) {
    std::cout << tables::printable(removal.name) << "  " << count_text(removal.runs.size()) << ", "
              << human_bytes(double(removal_bytes(removal)))
              << (removal.command.empty() ? "" : "  " + pasteable(removal.command)) << "\n";
    print_runs(removal);
  }
  return 0;
}

struct UndoOptions {
  std::string removal;
  bool list = false;
  bool json = false;
};

int undo(const Context& context, const UndoOptions& options) {
  if (options.list) return list_removed(context, options.json);
  LateProgress progress("restoring");
  const manage::Removal removal =
      manage::undo_removal(context.runs_dir(), options.removal, progress.reporter());
  if (options.json) return print_json(to_json(removal));
  std::cout << "restored " << count_text(removal.runs.size()) << "\n";
  print_runs(removal);
  return 0;
}

void add_rm(const Command& runs) {
  const auto [command, options] =
      runs.add_command("rm", "Remove runs; 'forge runs undo' restores them", remove);
  command
      .details(
          "The run folders move to .trash in the runs folder. If any selected run is active or "
          "queued, or an unfinished run starts from its weights (train.initial_weights, "
          "--continue), nothing is removed.")
      .examples(
          "forge runs rm train_llama-deb27d\n"
          "forge runs rm --where status=failed\n"
          "forge runs rm \"train_canon_*\" --where profile=quick --where tag=trial")
      .see_also("forge runs undo, forge gc");
  add_run_selector(command, options.runs);
  command.add_flag(
      "--force", options.force, "Remove runs from whose weights unfinished runs start, too");
  add_json_option(command, options.json);
}

void add_undo(const Command& runs) {
  const auto [command, options] = runs.add_command("undo", "Restore removed runs", undo);
  command
      .examples(
          "forge runs undo                       the last removal\n"
          "forge runs undo --list                all removals\n"
          "forge runs undo 20261122T001500Z      an earlier one")
      .see_also("forge runs rm, forge gc");
  command.add_option(
      "REMOVAL", options.removal, "Removal to undo, as --list names it [default: the last]");
  command.add_flag("--list", options.list, "List the removals, newest first");
  add_json_option(command, options.json);
}

}  // namespace

void add_runs_edit(const Command& runs) {
  add_archive(runs);
  add_note(runs);
  add_tag(runs);
  add_rm(runs);
  add_undo(runs);
}

}  // namespace forge::app
