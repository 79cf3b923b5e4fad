#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/hf/import_model.h"
#include "core/model/parameters.h"
#include "core/run/import_run.h"
#include "core/run/runs_dir.h"

namespace forge::app {
namespace {

struct ImportHfOptions {
  std::string folder;
  std::string name;
  bool json = false;
};

int import_hf(const Context& context, const ImportHfOptions& options) {
  const hf::ImportedModel model = hf::import_model(options.folder);
  const fs::path runs_dir = context.runs_dir();
  run::make_runs_dir(runs_dir);
  run::ImportRequest request;
  request.origin = options.folder;
  request.name = options.name;
  request.command = context.command_line();
  const run::ImportedRun imported = run::import_run(model, runs_dir, request);
  const std::string architecture = hf::class_name(model.config.architecture);
  const int64_t parameters = model::parameter_count(model.config.model);
  for (const std::string& note : model.notes) std::cerr << "note: " << note << "\n";
  if (options.json) {
    const nlohmann::json json = {{"run", imported.folder.id()},
                                 {"folder", imported.folder.path().string()},
                                 {"made", imported.made},
                                 {"architecture", architecture},
                                 {"parameters", parameters},
                                 {"tokenizer", !model.tokenizer.empty()},
                                 {"notes", model.notes}};
    print_json(json);
  } else {
    std::cout << (imported.made ? "imported " : "imported before: ") << options.folder << "\n"
              << "  run      " << imported.folder.id() << "\n"
              << "  model    " << architecture << ", " << with_thousands(parameters)
              << " parameters\n"
              << "  folder   " << shown_path(imported.folder.path()) << "\n";
  }
  return 0;
}

}  // namespace

void add_import_hf(const Command& app, Program& program) {
  auto options = std::make_shared<ImportHfOptions>();
  const Command command =
      app.add_subcommand("import-hf", "Make a run of a model folder of Hugging Face");
  command.footer(
      "Examples:\n"
      "  forge import-hf llama\n"
      "  forge import-hf ~/models/LlamaCanon-1B --name canon_1b\n"
      "  forge run train_llama --set train.initial_weights=canon_1b\n"
      "\n"
      "Reads plain Llama and LlamaCanon in safetensors, one file or sharded. The run is completed\n"
      "and has one checkpoint, so it can be named wherever a run can.");
  command.add_option("folder", options->folder, "Folder with config.json and the weights")
      .required()
      .type_name("DIR");
  command.add_option("--name", options->name, "What the run is called; without it as the folder")
      .type_name("NAME");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return import_hf(c, *options); };
  });
}

}  // namespace forge::app
