#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/hf/export_model.h"
#include "core/run/run_model.h"

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

/// Who can load the model, in words.
std::string reader_text(const hf::Exported& exported) {
  switch (exported.architecture) {
    case hf::Architecture::llama: return "transformers, as LlamaForCausalLM";
    case hf::Architecture::llama_canon:
      return "PhysicsLM4's LlamaCanonForCausalLM; stock transformers has no such model";
    case hf::Architecture::forge:
      return "forge alone: elsewhere there is no key for " + join(exported.forge_keys, ", ");
  }
  return "";
}

void print_text(const run::RunFolder& run,
                const run::RunModel& model,
                const ExportHfOptions& options,
                const hf::Exported& exported) {
  int64_t bytes = 0;
  for (const weights::WrittenFile& file : exported.files) bytes += file.bytes;
  std::cout << "exported " << run.id() << ", step " << model.step << ", to " << options.folder
            << "\n"
            << "  weights  " << with_thousands(exported.parameters) << " in " << options.dtype
            << "\n"
            << "  files    " << exported.files.size() << ", " << human_bytes(double(bytes)) << "\n"
            << "  read by  " << reader_text(exported) << "\n";
}

void print_exported_json(const run::RunFolder& run,
                         const run::RunModel& model,
                         const ExportHfOptions& options,
                         const hf::Exported& exported) {
  nlohmann::json files = nlohmann::json::array();
  for (const weights::WrittenFile& file : exported.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  const nlohmann::json json = {{"run", run.id()},
                               {"step", model.step},
                               {"folder", fs::absolute(options.folder).lexically_normal().string()},
                               {"dtype", options.dtype},
                               {"architecture", hf::class_name(exported.architecture)},
                               {"forge_keys", exported.forge_keys},
                               {"parameters", exported.parameters},
                               {"files", files}};
  print_json(json);
}

int export_hf(const Context& context, const ExportHfOptions& options) {
  hf::ExportOptions export_options;
  export_options.dtype = hf::dtype_from_name(options.dtype);
  export_options.replace = options.force;
  const run::RunFolder run = run::named_run(context.runs_dir(), options.run);
  const run::RunModel model = run::open_run(run, options.step);
  hf::ExportSource source;
  source.model = model.experiment.model;
  source.max_positions = model.experiment.train.seq_len;
  source.checkpoint = model.checkpoint;
  source.tokenizer = model.tokenizer;
  const hf::Exported exported = hf::export_model(source, options.folder, export_options);
  options.json ? print_exported_json(run, model, options, exported)
               : print_text(run, model, options, exported);
  return 0;
}

}  // namespace

void add_export_hf(const Command& app, Program& program) {
  auto options = std::make_shared<ExportHfOptions>();
  const Command command =
      app.add_subcommand("export-hf", "Write a run's model as a folder for Hugging Face");
  command.footer(
      "Examples:\n"
      "  forge export-hf train_llama-5a0c1f0e9b21 llama\n"
      "  forge export-hf train_llama-5a llama --step 300 --dtype bfloat16\n"
      "  forge export-hf runs/train_canon_ac-91 canon --force\n"
      "\n"
      "A model without Canon layers, with RoPE in Hugging Face's pairing and without QK-norm "
      "loads\n"
      "in stock transformers. Others say in config.json what they need.");
  command.add_option("run", options->run, "A run: its id, the beginning of it, or its folder")
      .required()
      .type_name("RUN");
  command.add_option("folder", options->folder, "Folder to make").required().type_name("DIR");
  command.add_option("--step", options->step, "Checkpoint to take; without it the newest")
      .type_name("N");
  command.add_option("--dtype", options->dtype, "float32, bfloat16 or float16").capture_default();
  command.add_flag("--force", options->force, "Replace a model folder that is there already");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return export_hf(c, *options); };
  });
}

}  // namespace forge::app
