#include <algorithm>
#include <iostream>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/manage/run_edits.h"
#include "core/run/open_model.h"

namespace forge::app {
namespace {

nlohmann::json json_of(const run::RunFolder& folder, const run::Remarks& remarks) {
  nlohmann::json json = to_json(remarks);
  json["run"] = folder.id();
  return json;
}

int archive(const Context& context, const RunChoice& choice, bool restore, bool json) {
  const std::vector<run::RunFolder> folders = chosen_runs(context, choice);
  nlohmann::json list = nlohmann::json::array();
  for (const run::RunFolder& folder : folders) {
    const run::Remarks remarks = manage::edit_annotations(
        folder, [&](run::Remarks& changed) { changed.archived = !restore; });
    list.push_back(json_of(folder, remarks));
    if (!json) std::cout << folder.id() << (restore ? ": restored\n" : ": archived\n");
  }
  if (json) print_json(list);
  if (folders.empty()) std::cerr << "no run is like that\n";
  return 0;
}

struct NoteOptions {
  std::string name;
  std::vector<std::string> text;
  bool json = false;
};

/// Without a text it is only shown; an empty one takes it away.
int note(const Context& context, const NoteOptions& options) {
  const run::RunFolder folder = run::named_run(context.runs_dir(), options.name);
  const run::Remarks remarks = options.text.empty()
                                   ? run::read_remarks(folder)
                                   : manage::edit_annotations(folder, [&](run::Remarks& changed) {
                                       changed.note = join(options.text, " ");
                                     });
  if (options.json) {
    print_json(json_of(folder, remarks));
  } else if (remarks.note.empty()) {
    std::cerr << folder.id() << ": no note\n";
  } else {
    std::cout << folder.id() << ": " << tables::printable(remarks.note) << "\n";
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
  const run::RunFolder folder = run::named_run(context.runs_dir(), options.name);
  for (const std::string& word : options.tags) run::require_tag(word);
  const run::Remarks remarks = manage::edit_annotations(folder, [&](run::Remarks& changed) {
    for (const std::string& word : options.tags) {
      const auto end = std::remove(changed.tags.begin(), changed.tags.end(), word);
      changed.tags.erase(end, changed.tags.end());
      if (!options.remove) changed.tags.push_back(word);
    }
  });
  if (options.json) {
    print_json(json_of(folder, remarks));
  } else {
    std::cout << folder.id() << ": "
              << (remarks.tags.empty() ? "no tags" : join(remarks.tags, ", ")) << "\n";
  }
  return 0;
}

void add_archive(const Command& runs, Program& program) {
  auto choice = std::make_shared<RunChoice>();
  auto restore = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  const Command command =
      runs.add_subcommand("archive", "Leave runs out of lists and tables, or take them in again");
  command.footer(
      "Nothing is moved: an identical run is still cached, and can be named wherever a run can.\n"
      "\n"
      "Examples:\n"
      "  forge runs archive train_llama-deb27d\n"
      "  forge runs archive --where \"created<2026-11-01\" --where status=completed\n"
      "  forge runs --archived                          lists them, too\n"
      "  forge runs archive train_llama-deb27d --restore");
  add_run_choice(command, *choice);
  command.add_flag("--restore", *restore, "Take them in again");
  command.add_flag("--json", *json, "As JSON");
  command.callback([&program, choice, restore, json] {
    program.action = [choice, restore, json](const Context& c) {
      return archive(c, *choice, *restore, *json);
    };
  });
}

void add_note(const Command& runs, Program& program) {
  auto options = std::make_shared<NoteOptions>();
  const Command command = runs.add_subcommand("note", "Keep a note with a run");
  command.footer(
      "It is no part of what the run is. 'forge runs show' shows it.\n"
      "\n"
      "Examples:\n"
      "  forge runs note train_llama-deb27d \"loss spike at 400: the disk was full\"\n"
      "  forge runs note train_llama-deb27d                shows it\n"
      "  forge runs note train_llama-deb27d \"\"             takes it away");
  command.add_option("RUN", options->name, "Its id or the beginning of it, or its folder")
      .required()
      .type_name("RUN|DIR");
  command.add_option("text", options->text, "The note, in the place of an earlier one")
      .type_name("TEXT");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return note(c, *options); };
  });
}

void add_tag(const Command& runs, Program& program) {
  auto options = std::make_shared<TagOptions>();
  const Command command = runs.add_subcommand("tag", "Tag a run");
  command.footer(
      "Tags are no part of what the run is. 'forge runs show' shows them.\n"
      "\n"
      "Examples:\n"
      "  forge runs tag train_llama-deb27d paper baseline\n"
      "  forge runs --where tag=paper\n"
      "  forge runs tag train_llama-deb27d baseline --remove");
  command.add_option("RUN", options->name, "Its id or the beginning of it, or its folder")
      .required()
      .type_name("RUN|DIR");
  command.add_option("tag", options->tags, "Letters, digits, '-', '_', '.', '/' and ':'")
      .type_name("TAG");
  command.add_flag("--remove", options->remove, "Take these tags away");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return tag(c, *options); };
  });
}

}  // namespace

void add_runs_remarks(const Command& runs, Program& program) {
  add_archive(runs, program);
  add_note(runs, program);
  add_tag(runs, program);
}

namespace {

std::string how_many(size_t runs) { return std::to_string(runs) + (runs == 1 ? " run" : " runs"); }

int64_t bytes_of(const manage::Removal& removal) {
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

int remove(const Context& context, const RunChoice& choice, bool json) {
  const std::vector<run::RunFolder> folders = chosen_runs(context, choice);
  if (folders.empty()) {
    std::cerr << "no run is like that: nothing was removed\n";
    if (json) std::cout << "null\n";
    return 0;
  }
  const manage::Removal removal =
      manage::remove_runs(context.runs_dir(), folders, context.command_line());
  if (json) {
    print_json(to_json(removal));
    return 0;
  }
  std::cout << "removed " << how_many(removal.runs.size()) << ", "
            << human_bytes(double(bytes_of(removal))) << "\n";
  print_runs(removal);
  std::cerr << "'forge runs undo' brings " << (folders.size() == 1 ? "it" : "them")
            << " back; 'forge gc' frees the space after 7 days\n";
  return 0;
}

int list_removed(const Context& context, bool json) {
  const std::vector<manage::Removal> removals = manage::list_removals(context.runs_dir());
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const manage::Removal& removal : removals) list.push_back(to_json(removal));
    print_json(list);
    return 0;
  }
  if (removals.empty()) std::cerr << "no removed run is there any more\n";
  for (const manage::Removal& removal : removals) {
    std::cout << removal.name << "  " << how_many(removal.runs.size()) << ", "
              << human_bytes(double(bytes_of(removal))) << "  " << removal.command << "\n";
    print_runs(removal);
  }
  return 0;
}

int undo(const Context& context, const std::string& name, bool json) {
  const manage::Removal removal = manage::undo_removal(context.runs_dir(), name);
  if (json) {
    print_json(to_json(removal));
    return 0;
  }
  std::cout << "brought back " << how_many(removal.runs.size()) << "\n";
  print_runs(removal);
  return 0;
}

}  // namespace

void add_runs_rm(const Command& runs, Program& program) {
  auto choice = std::make_shared<RunChoice>();
  auto json = std::make_shared<bool>(false);
  const Command command = runs.add_subcommand("rm", "Remove runs; 'forge runs undo' takes it back");
  command.footer(
      "Their folders move to .trash of the runs folder. Nothing is removed where one of them runs "
      "or\n"
      "waits in the queue.\n"
      "\n"
      "Examples:\n"
      "  forge runs rm train_llama-deb27d\n"
      "  forge runs rm --where status=failed\n"
      "  forge runs rm \"train_canon_*\" --where profile=quick --where tag=trial");
  add_run_choice(command, *choice);
  command.add_flag("--json", *json, "What was removed, as JSON");
  command.callback([&program, choice, json] {
    program.action = [choice, json](const Context& c) { return remove(c, *choice, *json); };
  });
}

void add_runs_undo(const Command& runs, Program& program) {
  auto name = std::make_shared<std::string>();
  auto list = std::make_shared<bool>(false);
  auto json = std::make_shared<bool>(false);
  const Command command = runs.add_subcommand("undo", "Bring removed runs back");
  command.footer(
      "Examples:\n"
      "  forge runs undo                       the last removal\n"
      "  forge runs undo --list                what can be brought back\n"
      "  forge runs undo 20261122T001500Z      an earlier one");
  command.add_option("removal", *name, "One of --list; without it the last").type_name("REMOVAL");
  command.add_flag("--list", *list, "Only list the removals, the last one first");
  command.add_flag("--json", *json, "As JSON");
  command.callback([&program, name, list, json] {
    program.action = [name, list, json](const Context& c) {
      return *list ? list_removed(c, *json) : undo(c, *name, *json);
    };
  });
}

}  // namespace forge::app
