#include "core/project/new_file_texts.h"

#include "core/base/text.h"

namespace forge::project {
namespace {

/// Text as a YAML and template string: in double quotes, on one line.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += ' ';
    } else {
      result += c;
    }
  }
  return result + "\"";
}

/// `text` with every "@KEY@" replaced.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& keys) {
  for (const auto& [key, value] : keys) {
    const std::string mark = "@" + key + "@";
    for (size_t at = text.find(mark); at != std::string::npos;
         at = text.find(mark, at + value.size())) {
      text.replace(at, mark.size(), value);
    }
  }
  return text;
}

constexpr const char* workspace_readme = R"(# @NAME@

@DESCRIPTION@A workspace of forge: projects lie anywhere below the folder that holds this one.

- `base_directories.yaml`: folders that templates refer to
- `meta_defaults.yaml`: what every project's meta.yaml extends: where templates are searched
- `workspace.yaml`: settings, such as the project that `forge run --all` runs outside any

`forge project create NAME` adds a project, `forge ls -r` lists them all.
)";

constexpr const char* base_directories =
    R"(## Folders that templates refer to. Change one here and every project follows.
-- set ns.library_dir = forge_library_dir
)";

constexpr const char* meta_defaults =
    R"(## What every project's meta.yaml extends: the order of the folders in which templates are searched.
-- set ns = namespace()
-- include 'base_directories.yaml'

[metadata]
name: Unnamed
description: ""

[searchdir_project]
searchdir:
- {{ joinpath(project_dir, 'templates') | toyaml }}

## Templates that projects share.
[searchdir_shared]
@LIBRARIES@
[searchdir_library]
- {{ joinpath(workspace_root, 'forge_workspace') | toyaml }}
- {{ ns.library_dir | toyaml }}

[configs]
config_prefix: configs
)";

constexpr const char* workspace_settings =
    R"(# Settings of this workspace. The folder forge_workspace/ itself marks the workspace's root.
# default_project: path/to/project   # what `forge run --all` runs outside any project
)";

constexpr const char* meta = R"(-- extends 'meta_defaults.yaml'

[metadata]
name: @QUOTED_NAME@
description: @QUOTED_DESCRIPTION@

[configs]
@CONFIGS@)";

constexpr const char* plain_readme = R"(# @NAME@

@DESCRIPTION@Configs are in `templates/@PREFIX@/`, what they share goes beside that folder.

    forge ls                  # the configs
    forge pp @DEFAULT@        # the text that a config becomes
)";

constexpr const char* training_readme = R"(# @NAME@

@DESCRIPTION@One change to a model against its baseline.

    forge run --all           # trains @DEFAULT@ and train_variant
    forge compare             # the table

- `templates/project.yaml`: what both share: data, tokenizer, training
- `templates/@PREFIX@/model.yaml`: the model
- `templates/@PREFIX@/train_variant.yaml`: the change; `forge keys` lists what can be changed
- `tables/variants.yaml`: which runs stand beside each other, and what must be equal for that

`forge project new-config train_NAME` adds a variant.
)";

constexpr const char* project_template =
    R"(## What the training configs share: data, tokenizer, and where their model is.
-- extends 'train/tiny.yaml'

[config_metadata]
== super()
-- set ns.model_project_dir = project_dir
-- set ns.model_project_config = "model.yaml"

[model]
-- include 'models/from_project.yaml'

[data]
-- include 'data/toy_stories.yaml'

[tokenizer]
-- include 'data/byte_level_bpe_2k.yaml'

)";

constexpr const char* model_config =
    R"(## The model of every config here; a variant changes keys of it.
-- extends 'models/llama_canon_4M.yaml'

[config_metadata]
== super()
-- set ns.config_name = "Model"
-- set ns.config_description = "Llama with 4.4 million parameters"
)";

constexpr const char* baseline_config = R"(## What the variants are compared with.
-- extends 'project.yaml'

[config_metadata]
== super()
-- set ns.config_name = "Baseline"
-- set ns.config_description = "The model as it is"
)";

constexpr const char* variant_config =
    R"(## The change that is tried. One change at a time says what caused a difference.
-- extends 'project.yaml'

[config_metadata]
== super()
-- set ns.config_name = "Variant"
-- set ns.config_description = "Canon layers before attention and before the MLP"

[overrides]
model.canon.set: AC
)";

constexpr const char* default_config_text = R"(name: Default
description: "A first config"
)";

constexpr const char* table = R"(title: @QUOTED_NAME@
baseline: @DEFAULT@

rows:
  - {config: @DEFAULT@, name: Baseline, positions: "—"}
  - {config: train_variant, name: Variant, positions: AC}

columns:
  - {kind: model, title: Model}
  - {kind: positions, title: Positions}
  - {kind: eval_loss, title: Eval Loss}
  - {kind: tokens_per_second, title: Tok/s}
  - {kind: peak_memory, title: Memory}
  - {kind: overhead, title: Overhead}

# Runs that differ in one of these do not stand in one table.
must_be_equal: [profile, data, tokenizer, evaluation, device, train, optimizer, schedule]
)";

std::string paragraph(const std::string& text) { return text.empty() ? "" : text + "\n\n"; }

std::vector<std::pair<std::string, std::string>> keys_of(const ProjectTexts& texts) {
  return {{"NAME", texts.name},
          {"QUOTED_NAME", quoted(texts.name)},
          {"DESCRIPTION", paragraph(texts.description)},
          {"QUOTED_DESCRIPTION", quoted(texts.description)},
          {"PREFIX", texts.config_prefix},
          {"DEFAULT", texts.default_config}};
}

}  // namespace

NewFiles workspace_files(const std::string& name,
                         const std::string& description,
                         const std::vector<std::string>& libraries) {
  std::string lines;
  for (const std::string& library : libraries) {
    lines += "- {{ joinpath(workspace_root, " + quoted(library) + ") | toyaml }}\n";
  }
  return {{"README.md",
           filled(workspace_readme, {{"NAME", name}, {"DESCRIPTION", paragraph(description)}})},
          {"base_directories.yaml", base_directories},
          {"meta_defaults.yaml", filled(meta_defaults, {{"LIBRARIES", lines}})},
          {"workspace.yaml", workspace_settings}};
}

std::string meta_text(const ProjectTexts& texts) {
  std::string configs = texts.config_prefix == "configs"
                            ? "== super()\n"
                            : "config_prefix: " + quoted(texts.config_prefix) + "\n";
  if (!texts.default_config.empty()) {
    configs += "default_config: " + quoted(texts.default_config + ".yaml") + "\n";
  }
  auto keys = keys_of(texts);
  keys.emplace_back("CONFIGS", configs);
  return filled(meta, keys);
}

NewFiles project_files(const ProjectTexts& texts, bool has_library) {
  const auto keys = keys_of(texts);
  const std::string configs = "templates/" + texts.config_prefix + "/";
  const std::string default_file = configs + texts.default_config + ".yaml";
  const bool trains = has_library && texts.copied_config.empty();
  NewFiles files = {{"README.md", filled(trains ? training_readme : plain_readme, keys)},
                    {"meta.yaml", meta_text(texts)}};
  if (!texts.copied_config.empty()) {
    files.emplace_back(default_file, texts.copied_config);
  } else if (!has_library) {
    files.emplace_back(default_file, default_config_text);
  } else {
    files.emplace_back("templates/project.yaml", project_template);
    files.emplace_back(configs + "model.yaml", model_config);
    files.emplace_back(default_file, baseline_config);
    files.emplace_back(configs + "train_variant.yaml", variant_config);
    files.emplace_back("tables/variants.yaml", filled(table, keys));
  }
  return files;
}

std::string config_text(const std::string& name,
                        const std::string& description,
                        const std::string& parent,
                        bool has_overrides) {
  if (parent.empty()) {
    return "name: " + quoted(name) + "\ndescription: " + quoted(description) + "\n";
  }
  std::string text = "-- extends '" + parent + "'\n\n";
  if (!has_overrides) return text;
  text += "[config_metadata]\n== super()\n";
  text += "-- set ns.config_name = " + quoted(name) + "\n";
  text += "-- set ns.config_description = " + quoted(description) + "\n\n";
  text +=
      "## Keys as 'forge keys' lists them, for example:\n##   model.canon.set: AC\n[overrides]\n";
  return text;
}

}  // namespace forge::project
