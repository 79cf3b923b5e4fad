#include "core/lingua/import_recipe.h"

#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/inspect/span_json.h"
#include "core/lingua/import.h"

namespace forge::lingua {

ImportedRecipe Import::run() {
  imported_.file_name = read_.file_name;
  imported_.left_out = read_.left_out;
  imported_.unknown = read_.unknown;
  take_shape();
  take_position();
  take_rest_of_model();
  take_canon();
  take_data();
  take_tokenizer();
  take_training();
  take_optimizer();
  take_schedule();
  take_names();
  return std::move(imported_);
}

void Import::refuse(const std::string& path,
                    const std::string& message,
                    const std::string& hint) const {
  throw Error("'" + path + "' " + message, read_.place(path), hint);
}

void Import::refuse_word(const std::string& path,
                         const std::string& word,
                         const std::vector<std::string>& known) const {
  const std::string near = did_you_mean(word, known);
  refuse(path, "is '" + word + "'", near.empty() ? "forge knows " + join(known, ", ") : near);
}

void Import::take_names() {
  const config::ModelConfig& model = experiment_.model;
  const config::TrainConfig& train = experiment_.train;
  std::string name = options_.name.empty() ? recipe_.name : options_.name;
  if (name.empty()) name = fs::path(read_.file_name).stem().string();
  if (name.empty()) name = "lingua";
  const std::string canon = model.canon.set.empty() ? "" : ", Canon " + model.canon.set;
  state("name", experiment_.name, name);
  state("description",
        experiment_.description,
        std::to_string(model.num_layers) + " layers of width " + std::to_string(model.hidden_size) +
            canon + ": " + with_thousands(train.max_steps) + " steps of " +
            with_thousands(train.batch_size) + " × " + with_thousands(train.seq_len) + " tokens");
  state("seed", experiment_.seed, recipe_.model.seed, "model.seed, of the initial weights");
}

ImportedRecipe import_recipe(const ReadRecipe& read, const ImportOptions& options) {
  return Import(read, options).run();
}

nlohmann::ordered_json to_json(const ImportedRecipe& imported) {
  nlohmann::ordered_json json;
  json["name"] = imported.experiment.name;
  json["gpus"] = imported.gpus;
  json["config"] = config::to_json(imported.experiment);
  json["notes"] = imported.notes;
  json["no_counterpart"] = nlohmann::ordered_json::array();
  for (const LeftOut& left_out : imported.left_out) {
    json["no_counterpart"].push_back(
        {{"key", left_out.path}, {"value", left_out.value}, {"reason", left_out.reason}});
  }
  json["unknown"] = nlohmann::ordered_json::array();
  for (const Error& unknown : imported.unknown) {
    json["unknown"].push_back({{"message", unknown.message()},
                               {"at", inspect::to_json(unknown.where())},
                               {"hint", unknown.hint()}});
  }
  return json;
}

}  // namespace forge::lingua
