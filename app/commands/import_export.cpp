#include <iostream>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/huggingface/export_model.h"
#include "core/huggingface/import_model.h"
#include "core/lingua/import_recipe.h"
#include "core/model/parameters.h"
#include "core/model/weights/model_files.h"
#include "core/project/new_files.h"
#include "core/run/import_run.h"
#include "core/run/open_model.h"
#include "core/run/runs_dir.h"

namespace forge::app {
namespace {

struct ExportHfOptions {
  std::string run;
  std::string folder;
  std::optional<int64_t> step;
  std::string dtype = "float32";
  bool force = false;
  bool json = false;
};

/// Which programs can load the model.
std::string reader_text(const huggingface::Exported& exported) {
  switch (exported.architecture) {
    case huggingface::Architecture::llama: return "transformers, as LlamaForCausalLM";
    case huggingface::Architecture::llama_canon:
    case huggingface::Architecture::gla:
    case huggingface::Architecture::gated_delta_net:
    case huggingface::Architecture::mamba2:
      return std::string("PhysicsLM4's ") + huggingface::class_name(exported.architecture) +
             ", not by stock transformers";
    case huggingface::Architecture::forge:
      return "forge only: other programs lack " + join(exported.forge_keys, ", ");
  }
  return "";
}

void print_text(const run::RunModel& model,
                const ExportHfOptions& options,
                const huggingface::Exported& exported) {
  int64_t bytes = 0;
  for (const weights::WrittenFile& file : exported.files) bytes += file.bytes;
  std::cout << "exported " << tables::printable(model.name) << ", step " << model.step << ", to "
            << options.folder << "\n"
            << "  weights  " << with_thousands(exported.parameters) << " in " << options.dtype
            << "\n"
            << "  files    " << exported.files.size() << ", " << human_bytes(double(bytes)) << "\n"
            << "  read by  " << reader_text(exported) << "\n";
}

int export_hf(const Context& context, const ExportHfOptions& options) {
  huggingface::ExportOptions export_options;
  export_options.dtype = huggingface::dtype_from_name(options.dtype);
  export_options.replace = options.force;
  const run::RunModel model = run::open_run(context.find_run(options.run), options.step);
  print_skipped_checkpoints(model);
  huggingface::ExportSource source;
  source.model = model.experiment.model;
  source.max_positions = model.experiment.train.seq_len;
  source.checkpoint = model.checkpoint;
  source.tokenizer = model.tokenizer;
  const huggingface::Exported exported =
      huggingface::export_model(source, options.folder, export_options);
  if (options.json) {
    const auto files =
        json_list(exported.files, [](const weights::WrittenFile& file) -> nlohmann::json {
          return {{"name", file.name}, {"bytes", file.bytes}};
        });
    return print_json(
        nlohmann::json{{"run", model.name},
                       {"step", model.step},
                       {"folder", fs::absolute(options.folder).lexically_normal().string()},
                       {"dtype", options.dtype},
                       {"architecture", huggingface::class_name(exported.architecture)},
                       {"forge_keys", exported.forge_keys},
                       {"parameters", exported.parameters},
                       {"files", files}});
  }
  print_text(model, options, exported);
  return 0;
}

struct ImportHfOptions {
  std::string folder;
  std::string name;
  bool json = false;
};

int import_hf(const Context& context, const ImportHfOptions& options) {
  const huggingface::ImportedModel model = huggingface::import_model(options.folder);
  const fs::path runs_dir = context.runs_dir();
  run::make_runs_dir(runs_dir);
  run::ImportRequest request;
  request.origin = options.folder;
  request.name = options.name;
  request.command = context.command_line();
  const run::ImportedRun imported = run::import_run(model, runs_dir, request);
  const std::string architecture = huggingface::class_name(model.config.architecture);
  const int64_t parameters = model::parameter_count(model.config.model);
  std::vector<std::string> notes = model.notes;
  const std::string broken = weights::not_finite_text(model.weights);
  if (!broken.empty()) notes.push_back("the weights are broken: " + broken);
  for (const std::string& note : notes) std::cerr << "note: " << tables::printable(note) << "\n";
  if (options.json) {
    const nlohmann::json json = {{"run", imported.folder.id()},
                                 {"folder", imported.folder.path().string()},
                                 {"made", imported.created},
                                 {"architecture", architecture},
                                 {"parameters", parameters},
                                 {"tokenizer", !model.tokenizer.empty()},
                                 {"notes", notes}};
    return print_json(json);
  }
  std::cout << (imported.created ? "imported " : "imported before: ") << options.folder << "\n"
            << "  run      " << tables::printable(imported.folder.id()) << "\n"
            << "  model    " << architecture << ", " << with_thousands(parameters)
            << " parameters\n"
            << "  folder   " << shown_path(imported.folder.path()) << "\n";
  return 0;
}

struct ImportLinguaOptions {
  std::string recipe;
  std::string output;
  bool json = false;
  lingua::ImportOptions import;
};

/// The converted recipe; `file` is "" where its text is to be printed.
struct WrittenConfig {
  std::string text;
  fs::path file;
};

WrittenConfig write_recipe_config(const Context& context,
                                  const ImportLinguaOptions& options,
                                  const lingua::ImportedRecipe& imported) {
  if (context.names_project() && options.output.empty()) {
    const project::Project project = context.project();
    const auto form =
        project::has_library(project) ? lingua::ConfigForm::leaf : lingua::ConfigForm::standalone;
    project::NewConfig request;
    request.project = project.folder;
    request.name = imported.experiment.name;
    request.text = lingua::write_config(imported, form);
    return {request.text, create_config(request, context.host_environment())};
  }
  const std::string text = lingua::write_config(imported, lingua::ConfigForm::standalone);
  if (!options.output.empty()) {
    if (fs::exists(options.output)) {
      throw Error("'" + options.output + "' exists already", "files are never overwritten");
    }
    write_file_atomic(options.output, text);
  }
  return {text, options.output};
}

void print_diagnostics(const lingua::ImportedRecipe& imported) {
  for (const Error& unknown : imported.unknown) {
    std::cerr << describe_remark("warning: " + tables::printable(unknown.message()),
                                 unknown.where(),
                                 unknown.hint())
              << "\n";
  }
  for (const std::string& note : imported.notes)
    std::cerr << "note: " << tables::printable(note) << "\n";
}

int import_lingua(const Context& context, const ImportLinguaOptions& options) {
  const lingua::ImportedRecipe imported =
      lingua::import_recipe(lingua::read_recipe_file(options.recipe), options.import);
  const auto [text, file] = write_recipe_config(context, options, imported);
  if (options.json) {
    nlohmann::ordered_json json = lingua::to_json(imported);
    json["file"] = nullptr;
    if (!file.empty()) json["file"] = file.string();
    json["text"] = text;
    print_json(json);
  } else {
    print_diagnostics(imported);
    std::cout << (file.empty() ? text : "wrote " + shown_path(file) + "\n");
  }
  return static_cast<int>(imported.unknown.empty() ? ExitCode::done : ExitCode::failed);
}

}  // namespace

void add_export_hf(const Command& app) {
  const auto [command, options] =
      app.add_command("export-hf", "Export a run as a Hugging Face model folder", export_hf);
  command
      .details(
          "A Llama without Canon layers and QK-norm, with RoPE in Hugging Face's pairing, loads in "
          "stock transformers. For other models config.json names what is needed.")
      .examples(
          "forge export-hf train_llama-5a0c1f0e9b21 llama\n"
          "forge export-hf train_llama-5a llama --step 300 --dtype bfloat16\n"
          "forge export-hf runs/train_canon_ac-91 canon --force")
      .see_also("forge import-hf, docs/HUGGING_FACE.md");
  add_run_argument(command, options.run);
  command.add_option("DIR", options.folder, "Folder to create").required();
  add_step_option(command, options.step);
  command.add_option("--dtype", options.dtype, "Type of the weights: float32, bfloat16 or float16")
      .show_default();
  command.add_flag("--force", options.force, "Replace an existing model folder");
  add_json_option(command, options.json);
}

void add_import_hf(const Command& app) {
  const auto [command, options] =
      app.add_command("import-hf", "Import a Hugging Face model as a run", import_hf);
  command
      .details(
          "Reads Llama, LlamaCanon, and GLA5, GDN2 and Mamba2 with or without Canon, in "
          "safetensors, one file or sharded. The new run is completed and has one checkpoint, so "
          "every command takes it as a run.")
      .examples(
          "forge import-hf llama\n"
          "forge import-hf ~/models/LlamaCanon-1B --name canon_1b\n"
          "forge run train_llama --set train.initial_weights=canon_1b")
      .see_also("forge export-hf, docs/HUGGING_FACE.md");
  command.add_option("DIR", options.folder, "Folder with config.json and the weights").required();
  command.add_option("--name", options.name, "Name of the run [default: the folder's name]");
  add_json_option(command, options.json);
}

void add_import_lingua(const Command& app) {
  const auto [command, options] = app.add_command(
      "import-lingua", "Convert a training recipe of Meta Lingua to a config", import_lingua);
  command
      .details(
          "Without -o and -p the config is printed. It extends no template and marks with a "
          "comment "
          "what has no counterpart. Keys that Lingua does not have are reported and skipped: exit "
          "code 1. Recipes of Llama, LlamaCanon and the linear models GLA5, GDN2 and Mamba2 are "
          "supported.")
      .examples(
          "forge import-lingua recipe.yaml --gpus 128\n"
          "forge import-lingua recipe.yaml --gpus 128 -o templates/configs/recipe.yaml\n"
          "forge import-lingua recipe.yaml --gpus 128 -p projects/recipes --name Llama-1B");
  command.add_option("FILE", options.recipe, "The recipe").required();
  add_project_option(command);
  command.add_option(
      "--name", options.import.name, "Name of the config [default: the recipe's name]");
  command.add_option("-o,--output <FILE>", options.output, "File to write");
  command
      .add_option("--gpus",
                  options.import.gpus,
                  "Number of GPUs of the original training, which the recipe does not state")
      .between(1, 1 << 20);
  command
      .add_option("--vocab-size",
                  options.import.vocab_size,
                  "Vocabulary size, for a recipe whose vocab_size is -1")
      .between(261, 1 << 24);
  add_json_option(command, options.json);
}

}  // namespace forge::app
