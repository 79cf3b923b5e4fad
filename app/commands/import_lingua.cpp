#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "core/base/fs.h"
#include "core/lingua/import_recipe.h"
#include "core/lingua/write_config.h"
#include "core/project/new_files.h"

namespace forge::app {
namespace {

struct ImportLinguaOptions {
  std::string recipe;
  std::string output;
  bool into_project = false;
  bool json = false;
  lingua::ImportOptions import;
};

/// What was made of the recipe; `file` is "" where the text is to be printed.
struct WrittenConfig {
  std::string text;
  fs::path file;
};

WrittenConfig write_where_asked(const Context& context,
                                const ImportLinguaOptions& options,
                                const lingua::ImportedRecipe& imported) {
  if (options.into_project && options.output.empty()) {
    const project::Project project = context.project();
    const auto form =
        project::has_library(project) ? lingua::ConfigForm::leaf : lingua::ConfigForm::standalone;
    project::NewConfig request;
    request.project = project.folder;
    request.name = imported.experiment.name;
    request.text = lingua::write_config(imported, form);
    return {request.text, create_config(request, context.surroundings())};
  }
  const std::string text = lingua::write_config(imported, lingua::ConfigForm::standalone);
  if (!options.output.empty()) {
    if (fs::exists(options.output)) {
      throw Error("'" + options.output + "' exists already", {}, "nothing is written over");
    }
    write_file_atomic(options.output, text);
  }
  return {text, options.output};
}

void print_remarks(const lingua::ImportedRecipe& imported) {
  for (const Error& unknown : imported.unknown) {
    std::cerr << describe_remark("warning: " + unknown.message(), unknown.where(), unknown.hint())
              << "\n";
  }
  for (const std::string& note : imported.notes) std::cerr << "note: " << note << "\n";
}

int import_lingua(const Context& context, const ImportLinguaOptions& options) {
  const lingua::ImportedRecipe imported =
      lingua::import_recipe(lingua::read_recipe_file(options.recipe), options.import);
  const auto [text, file] = write_where_asked(context, options, imported);
  if (options.json) {
    nlohmann::ordered_json json = lingua::to_json(imported);
    json["file"] = nullptr;
    if (!file.empty()) json["file"] = file.string();
    json["text"] = text;
    print_json(json);
  } else {
    print_remarks(imported);
    std::cout << (file.empty() ? text : "wrote " + shown_path(file) + "\n");
  }
  return static_cast<int>(imported.unknown.empty() ? ExitCode::done : ExitCode::failed);
}

}  // namespace

void add_import_lingua(const Command& app, Program& program) {
  auto options = std::make_shared<ImportLinguaOptions>();
  const Command command =
      app.add_subcommand("import-lingua", "Make a config of a training recipe of Meta Lingua");
  command.footer(
      "Examples:\n"
      "  forge import-lingua recipe.yaml --gpus 128\n"
      "  forge import-lingua recipe.yaml --gpus 128 -o templates/configs/recipe.yaml\n"
      "  forge import-lingua recipe.yaml --gpus 128 -p projects/recipes --name Llama-1B\n"
      "\n"
      "Without -o or -p the text is printed. It stands alone, with a comment where a value has no\n"
      "counterpart. Keys that lingua does not have are reported and left out: exit code 1.\n"
      "Recipes of Llama and LlamaCanon are read, those of linear models refused.");
  command.add_option("recipe", options->recipe, "The recipe").required().type_name("FILE.yaml");
  add_project_option(command, program);
  command.add_option("--name", options->import.name, "Name of the config; else the recipe's own")
      .type_name("NAME");
  command.add_option("-o,--output", options->output, "File to write").type_name("FILE");
  command
      .add_option("--gpus", options->import.gpus, "GPUs of the recipe, which its file does not say")
      .between(1, 1 << 20);
  command
      .add_option("--vocab-size",
                  options->import.vocab_size,
                  "Entries of the tokenizer, where the recipe's vocab_size is -1")
      .between(261, 1 << 24);
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    options->into_project = !program.globals.project.empty();
    program.action = [options](const Context& c) { return import_lingua(c, *options); };
  });
}

}  // namespace forge::app
