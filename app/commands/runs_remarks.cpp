#include <algorithm>
#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "app/run_choice.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/report/display_text.h"
#include "core/run/run_model.h"
#include "core/upkeep/change_remarks.h"

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
    const run::Remarks remarks =
        upkeep::change_remarks(folder, [&](run::Remarks& changed) { changed.archived = !restore; });
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
                                   : upkeep::change_remarks(folder, [&](run::Remarks& changed) {
                                       changed.note = join(options.text, " ");
                                     });
  if (options.json) {
    print_json(json_of(folder, remarks));
  } else if (remarks.note.empty()) {
    std::cerr << folder.id() << ": no note\n";
  } else {
    std::cout << folder.id() << ": " << report::printable(remarks.note) << "\n";
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
  const run::Remarks remarks = upkeep::change_remarks(folder, [&](run::Remarks& changed) {
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

}  // namespace forge::app
