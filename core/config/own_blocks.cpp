#include "core/config/own_blocks.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/config/keys.h"
#include "core/config/layer_settings.h"
#include "core/model/kinds.h"
#include "core/model/parameters.h"
#include "core/python/unicode.h"

namespace forge::config {
namespace {

using Json = nlohmann::json;

constexpr size_t longest_source = size_t{1} << 20;
constexpr const char* section = "model.blocks.";

std::vector<std::string> names_of_forge() {
  std::vector<std::string> names = texts_of(model::mixer_kinds(), &model::BlockKind::name);
  for (const char* name : {"mlp", "canon", "norm", "blocks"}) names.emplace_back(name);
  return names;
}

bool is_forges_kind(const std::string& name) {
  const std::vector<std::string> names = names_of_forge();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The line of the first carriage return that no line feed follows, from 1; 0: there is none.
size_t line_of_lone_return(const std::string& text) {
  size_t line = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') ++line;
    if (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n')) return line;
  }
  return 0;
}

/// A name of a Python module, which a file of that name is.
bool is_module_name(const std::string& name) {
  return is_allowed_name(name) && name.find('-') == std::string::npos &&
         !(name[0] >= '0' && name[0] <= '9');
}

/// The name of a block that an element of model.layers gives as the kind of its MLP; "": none.
std::string own_mlp_of(const model::LayerSpec& layer) {
  if (layer.settings.empty()) return "";
  const Json settings = parse_json(layer.settings);
  const Json* const kind = find_value(settings, "mlp.kind");
  if (!kind || !kind->is_string()) return "";
  const std::vector<std::string> known = names_of(model::MlpKind{});
  const auto name = kind->get<std::string>();
  return std::find(known.begin(), known.end(), name) == known.end() ? name : "";
}

/// Names that the model uses and no kind of forge's has.
std::set<std::string> named_blocks(const ModelConfig& model) {
  std::set<std::string> names = {model.mlp.kind.own};
  for (const model::LayerSpec& layer : model.layers) {
    names.insert(own_mlp_of(layer));
    if (!is_forges_kind(layer.mixer)) names.insert(layer.mixer);
  }
  for (const auto& [name, block] : model.blocks) {
    if (!block.at.empty()) names.insert(name);
  }
  names.erase("");
  return names;
}

/// The key that makes the block part of the model.
std::string naming_key(const Draft& draft, const std::string& name) {
  const ModelConfig& model = draft.experiment.model;
  const bool in_layers =
      std::any_of(model.layers.begin(), model.layers.end(), [&](const model::LayerSpec& layer) {
        return layer.mixer == name || own_mlp_of(layer) == name;
      });
  if (in_layers) return "model.layers";
  return model.mlp.kind.own == name ? "model.mlp.kind" : section + name + ".at";
}

void check_positions(const Draft& draft, const std::string& name) {
  const std::string& at = draft.experiment.model.blocks.at(name).at;
  if (at.empty() || at == "A" || at == "C" || at == "AC") return;
  const std::string key = section + name + ".at";
  throw complaint(draft,
                  {key},
                  key + " '" + at + "' is none of A, C and AC",
                  "A: before the mixer of every layer; C: before its MLP");
}

fs::path file_in(const std::vector<fs::path>& folders, const std::string& name) {
  for (const fs::path& folder : folders) {
    if (is_seen_file(folder / (name + ".py"))) return folder / (name + ".py");
  }
  return {};
}

void refuse_unnamed(Draft& draft, const std::string& name) {
  const std::string own = section + name + ".";
  for (const auto& [path, origin] : draft.origins) {
    if (!starts_with(path, own) || origin.set_by.layer == default_layer) continue;
    if (rank(origin.set_by) < rank(draft.origins.at("model.layers").set_by)) continue;
    if (is_of_replaced_layers(draft, path)) continue;
    throw Error(path + " has no meaning where no layer has the block " + name,
                origin.set_by.origin,
                "name " + name + " in model.layers or model.mlp.kind, or give it a position, " +
                    section + name + ".at");
  }
}

/// Forgets a block, with the origins of its keys.
void forget(Draft& draft, const std::string& name) {
  const std::string own = section + name + ".";
  draft.experiment.model.blocks.erase(name);
  for (auto origin = draft.origins.begin(); origin != draft.origins.end();) {
    origin = starts_with(origin->first, own) ? draft.origins.erase(origin) : std::next(origin);
  }
}

std::string shown_source(const std::string& source) {
  const auto lines = std::count(source.begin(), source.end(), '\n');
  return counted(static_cast<size_t>(lines), "line") + ", " + hash_hex(source).substr(0, 12);
}

void refuse_given(const Draft& draft, const std::string& name) {
  for (const char* key : {"source", "described"}) {
    const std::string path = section + name + "." + key;
    const Setting& setting = draft.origins.at(path).set_by;
    if (setting.layer != default_layer)
      throw Error(
          "'" + path + "' is not for a config to give", setting.origin, "forge fills it in");
  }
}

void read_source(Draft& draft, const PathBases& bases, const std::string& name) {
  model::OwnBlock& block = draft.experiment.model.blocks.at(name);
  const std::string key = section + name + ".file", naming = naming_key(draft, name);
  if (block.file.empty()) {
    std::vector<fs::path> folders = bases.blocks;
    const fs::path project = draft.origins.at(naming).set_by.project_folder;
    if (!project.empty()) folders.insert(folders.begin(), project / "blocks");
    block.file = file_in(folders, name).string();
    derive(draft, key, naming, block.file);
  } else {
    complete_path(draft, key, block.file, bases);
  }
  if (block.file.empty()) {
    throw complaint(draft,
                    {naming},
                    "no file " + shown_path(bases.blocks.front() / (name + ".py")),
                    "'forge block new " + name + "' writes one to begin with");
  }
  block.source = bases.block_texts ? bases.block_texts->read(block.file)
                                   : read_file_within(block.file, longest_source);
  const bool is_text = python::find_invalid_utf8(block.source) == std::string::npos;
  if (!is_text || block.source.find('\0') != std::string::npos)
    throw complaint(draft, {key}, shown_path(block.file) + " is no text of UTF-8");
  if (const size_t line = line_of_lone_return(block.source); line > 0)
    throw complaint(draft,
                    {key},
                    shown_path(block.file) + ":" + std::to_string(line) +
                        ": a carriage return without a line feed ends a line for Python, and an "
                        "editor shows none",
                    "end lines by a line feed");
  derive(draft, section + name + ".source", naming, shown_source(block.source));
}

/// The name of the block whose key of that name the path is; "" for another path.
std::string block_with(const std::string& path, const std::string& key) {
  if (!starts_with(path, section) || !ends_with(path, "." + key)) return "";
  const std::vector<std::string> parts = split(path, '.');
  return parts.size() == 4 ? parts[2] : "";
}

}  // namespace

std::string BlockTexts::read(const fs::path& file) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = texts_.find(file);
  if (known != texts_.end()) return known->second;
  return texts_.emplace(file, read_file_within(file, longest_source)).first->second;
}

std::vector<fs::path> own_block_folders(const fs::path& project, const fs::path& workspace_root) {
  std::vector<fs::path> folders = {project / "blocks"};
  if (!workspace_root.empty() && workspace_root / "blocks" != folders[0])
    folders.push_back(workspace_root / "blocks");
  return folders;
}

void read_own_blocks(Draft& draft, const PathBases& bases, const ProblemSink& on_problem) {
  ModelConfig& model = draft.experiment.model;
  const std::set<std::string> named = named_blocks(model);
  std::vector<std::string> unnamed;
  for (const auto& [name, block] : model.blocks) {
    if (named.count(name) == 0) unnamed.push_back(name);
  }
  for (const std::string& name : unnamed) {
    attempt(on_problem, Problem::Kind::disagreement, [&] { refuse_unnamed(draft, name); });
    forget(draft, name);
  }
  for (const std::string& name : named) {
    // A name of nothing is a mistake in model.layers, which has kinds to suggest.
    if (model.blocks.count(name) == 0 && file_in(bases.blocks, name).empty()) continue;
    if (!is_module_name(name)) {
      attempt(on_problem, Problem::Kind::wrong_value, [&] {
        throw complaint(draft,
                        {"model.layers"},
                        "'" + name + "' is no name of a Python module",
                        "letters, digits and _, not beginning with a digit");
      });
      continue;
    }
    model.blocks[name];
    add_defaults_of_all_named(draft);
    attempt(on_problem, Problem::Kind::wrong_value, [&] { refuse_given(draft, name); });
    attempt(on_problem, Problem::Kind::wrong_value, [&] { check_positions(draft, name); });
    attempt(on_problem, Problem::Kind::missing_file, [&] { read_source(draft, bases, name); });
  }
}

bool has_own_blocks(const ModelConfig& model) { return !model.blocks.empty(); }

void choose_backend_of_own_blocks(Draft& draft) {
  Experiment& experiment = draft.experiment;
  if (!has_own_blocks(experiment.model) || experiment.backend != own_backend) return;
  const std::string& name = experiment.model.blocks.begin()->first;
  // The templates that came with forge name libtorch; who asks for it later means it.
  const int asked = rank(draft.origins.at("backend").set_by);
  const int named = rank(draft.origins.at(naming_key(draft, name)).set_by);
  if (asked > named || asked == rank_of_command_line) {
    throw complaint(
        draft,
        {"backend"},
        "backend libtorch cannot compute '" + name + "', a block in Python",
        "--backend pytorch computes it; forge chooses it where nobody asks for another");
  }
  experiment.backend = own_block_backend;
  derive(draft, "backend", naming_key(draft, name), own_block_backend);
}

namespace {

/// "model.layers.0.mlp" of "model.layers.0.mlp.up_proj.weight"; "" where it is of no layer.
std::string module_in_layer(const std::string& weight) {
  const std::string layers = "model.layers.";
  if (!starts_with(weight, layers)) return "";
  const size_t name = weight.find('.', layers.size()) + 1;
  return weight.substr(0, weight.find('.', name));
}

/// Two modules of one name would be one.
void require_own_modules(const ModelConfig& model) {
  std::map<std::string, std::string> parts;  // by module
  std::set<std::string> weights;
  for (const model::Parameter& weight : model::parameters(model)) {
    const std::string module = module_in_layer(weight.name);
    const bool is_new_weight = weights.insert(weight.name).second;
    const std::string& part = parts.emplace(module, weight.part).first->second;
    const bool is_of_blocks = model.blocks.count(part) > 0 || model.blocks.count(weight.part) > 0;
    if (module.empty() || !is_of_blocks || (is_new_weight && part == weight.part)) continue;
    throw Error("two blocks of a layer have weights called " + module + ".…",
                "`module` of a block's class is what its weights are called by: choose another");
  }
}

}  // namespace

void set_descriptions(ResolvedConfig& resolved, const std::map<std::string, Json>& found) {
  ModelConfig& model = resolved.experiment.model;
  for (auto& [name, block] : model.blocks) {
    const auto described = found.find(name);
    if (described == found.end()) throw Error("nothing was said of the block '" + name + "'");
    block.described.text = json_text(described->second);
    model::check_description(name, block);
    resolved.json.at("model").at("blocks").at(name)["described"] = described->second;
  }
  lay_layer_settings(model);
  require_own_modules(model);
}

void reduce_own_blocks(Json& experiment) {
  const Json::json_pointer place("/model/blocks");
  if (!experiment.contains(place) || !experiment[place].is_object()) return;
  for (auto& [name, block] : experiment[place].items()) {
    if (!block.is_object()) continue;
    block.erase("file");
    block.erase("described");
    if (block.contains("source") && block["source"].is_string())
      block["source"] = hash_hex(block["source"].get<std::string>());
  }
}

Json shown_leaf(const std::string& path, const Json& value) {
  if (block_with(path, "source").empty() || !value.is_string()) return value;
  return shown_source(value.get<std::string>());
}

bool is_hidden_leaf(const std::string& path) { return !block_with(path, "described").empty(); }

}  // namespace forge::config
