#include <unistd.h>

#include <iostream>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/project/new_files.h"
#include "core/run/open_model.h"

namespace forge::app {
namespace {

struct NewBlockOptions {
  std::string name;
  std::string place = "mixer";
  bool json = false;
};

int new_block(const Context& context, const NewBlockOptions& options) {
  if (context.workspace().shipped)
    throw Error("no project here: the block would be written into " +
                    shown_path(context.workspace().root) + ", which came with forge",
                "change to a workspace of yours, or make one with 'forge init'");
  project::NewBlock request;
  request.project = context.project().folder;
  request.name = options.name;
  request.place = options.place == "mixer" ? project::BlockPlace::mixer
                  : options.place == "mlp" ? project::BlockPlace::mlp
                                           : project::BlockPlace::canon;
  const project::CreatedBlock created = project::create_block(request, context.host_environment());
  if (options.json) {
    const auto files = texts_of(created.files, [](const fs::path& file) { return file.string(); });
    return print_json(nlohmann::json{{"files", files}, {"config", created.config}});
  }
  for (const fs::path& file : created.files) std::cout << "wrote " << shown_path(file) << "\n";
  std::cout << "next: forge check " << created.config << " && forge run " << created.config << "\n";
  return 0;
}

struct ShowBlockOptions {
  std::string run;
  std::string name;
};

/// The one block of that name, or the only one.
const model::OwnBlock& chosen_block(const std::map<std::string, model::OwnBlock>& blocks,
                                    const ShowBlockOptions& options) {
  std::vector<std::string> names;
  for (const auto& [name, block] : blocks) names.push_back(name);
  if (names.empty()) throw Error("run '" + options.run + "' has no block in Python");
  if (options.name.empty() && names.size() == 1) return blocks.begin()->second;
  const auto found = blocks.find(options.name);
  if (found != blocks.end()) return found->second;
  throw Error(options.name.empty() ? "name one of the run's blocks"
                                   : "the run has no block '" + options.name + "'",
              "its blocks are " + join(names, ", "));
}

int show_block(const Context& context, const ShowBlockOptions& options) {
  const run::RunFolder folder = context.find_run(options.run);
  const config::Experiment experiment = folder.experiment();
  const std::string& source = chosen_block(experiment.model.blocks, options).source;
  std::string text = source;
  for (size_t end = 0; (end = text.find("\r\n", end)) != std::string::npos;) text.erase(end, 1);
  const std::string shown = tables::printable_lines(text);
  if (shown == text && ::isatty(STDOUT_FILENO) == 0) {
    // As it is, to the last newline: the text in a file is the same block.
    tables::PrintableOutput::write_raw(std::cout, source);
    return 0;
  }
  std::cout << shown;
  if (shown != text)
    print_warnings(
        {"control characters of the block are not printed: what is printed is another "
         "block"});
  return 0;
}

}  // namespace

void add_block(const Command& app) {
  const Command group =
      app.add_command("block", "Begin and show blocks of one's own").requires_subcommand();
  const auto [command, options] = group.add_command(
      "new", "Write a block in Python with a config, a table and a test that pass", new_block);
  command
      .details(
          "The config changes the project's default config by the block. The backend pytorch "
          "trains "
          "it, which needs Python and torch.")
      .examples(
          "forge block new my_mixer\n"
          "forge block new my_mlp --place mlp")
      .see_also("forge check, docs/OWN_BLOCKS.md");
  command.add_option("NAME", options.name, "Name of the block and its file").required();
  add_project_option(command);
  command
      .add_option("--place", options.place, "Where it stands in a layer; canon: before the mixer")
      .one_of({"mixer", "mlp", "canon"})
      .show_default();
  add_json_option(command, options.json);

  const auto [show, show_options] =
      group.add_command("show", "Print the source of a block as a run computed it", show_block);
  show.details("It prints the text and runs nothing.")
      .examples("forge block show train_my_mixer-1f2e > my_mixer.py")
      .see_also("forge diff, forge why");
  add_run_argument(show, show_options.run);
  show.add_option("NAME", show_options.name, "Which block [default: the only one]");
}

}  // namespace forge::app
