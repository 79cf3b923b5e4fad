#include "core/huggingface/import_model.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/text.h"
#include "core/data/tokenizer/tokenizer_file.h"
#include "core/model/weights/model_files.h"

namespace forge::huggingface {
namespace {

constexpr uintmax_t largest_config = 10'000'000;

/// Python writes numbers that JSON does not have: Mamba2's time_step_limit is [0.0, Infinity]. They
/// become texts, so that a key that has to be a number is refused and not taken for unset.
std::string with_infinities_as_texts(const std::string& text) {
  std::string plain;
  bool in_text = false;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '"') in_text = !in_text;
    size_t length = 0;
    for (const std::string word : {"-Infinity", "Infinity", "NaN"}) {
      if (!in_text && length == 0 && text.compare(at, word.size(), word) == 0) length = word.size();
    }
    plain += length > 0 ? '"' + text.substr(at, length) + '"'
                        : text.substr(at, in_text && text[at] == '\\' ? 2 : 1);
    at += length > 0 ? length : in_text && text[at] == '\\' ? 2 : 1;
  }
  return plain;
}

/// Errors name the file. It is the user who named the folder: they are wrong usage.
nlohmann::json read_named_json(const fs::path& path) {
  try {
    const nlohmann::json json = read_json_file(path, largest_config);
    return json.is_discarded() ? try_parse_json(with_infinities_as_texts(read_file(path))) : json;
  } catch (const Error& error) {
    throw Error(error.message(), error.hint());
  }
}

ReadConfig read_config_file(const fs::path& path) {
  const nlohmann::json json = read_named_json(path);
  try {
    if (json.is_discarded()) throw Error("it is not JSON");
    return read_config(json);
  } catch (const Error& error) {
    throw Error("cannot use '" + shown_path(path) + "': " + error.message(), error.hint());
  }
}

/// They end texts elsewhere, and do not here.
void note_other_ids(const std::string& key,
                    const std::vector<int64_t>& ids,
                    int32_t of_tokenizer,
                    std::vector<std::string>& notes) {
  if (ids.empty() || std::find(ids.begin(), ids.end(), of_tokenizer) != ids.end()) return;
  const std::string taken =
      of_tokenizer < 0 ? "which has none" : "which has " + std::to_string(of_tokenizer);
  notes.push_back(key + " " + std::to_string(ids.front()) +
                  " of config.json is not that of the tokenizer, " + taken +
                  ": forge goes by the tokenizer");
}

void read_tokenizer(const fs::path& folder, ImportedModel& model) {
  fs::path path = folder / "tokenizer.json";
  if (!fs::exists(path)) path = folder / "tokenizer.model";
  if (!fs::exists(path)) {
    model.notes.push_back(
        "there is no tokenizer.json and no tokenizer.model: the run takes token ids only");
    return;
  }
  try {
    const data::Tokenizer tokenizer = data::read_tokenizer_file(path);
    if (tokenizer.vocab_size() > model.config.model.vocab_size) {
      throw Error("it has " + with_thousands(tokenizer.vocab_size()) + " entries, the model " +
                  with_thousands(model.config.model.vocab_size));
    }
    model.tokenizer = path;
    model.tokenizer_fingerprint = tokenizer.fingerprint();
    note_other_ids("bos_token_id", model.config.bos_ids, tokenizer.bos_id(), model.notes);
    note_other_ids("eos_token_id", model.config.eos_ids, tokenizer.eos_id(), model.notes);
  } catch (const Error& error) {
    model.notes.push_back(error.message() + ": the run takes token ids only");
  }
}

}  // namespace

bool is_model_folder(const fs::path& folder) {
  return is_file(folder / "config.json") && (path_exists(folder / weights::model_file) ||
                                             path_exists(folder / weights::model_index_file));
}

ImportedModel import_model(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw Error("there is no folder '" + shown_path(folder) + "'",
                "name a folder with config.json and model.safetensors");
  }
  ReadConfig config = read_config_file(folder / "config.json");
  ImportedModel model{std::move(config), weights::ModelFiles(folder), {}, {}, {}, {}};
  try {
    model.weights = model_weights(model.config.model, model.files.tensors());
  } catch (const Error& error) {
    throw Error("cannot use '" + shown_path(folder) + "': " + error.message(), error.hint());
  }
  if (!model.config.unknown.empty()) {
    model.notes.push_back("config.json has keys that forge does not know and passed over: " +
                          join(model.config.unknown, ", "));
  }
  model.notes.insert(model.notes.end(), model.config.notes.begin(), model.config.notes.end());
  read_tokenizer(folder, model);
  return model;
}

}  // namespace forge::huggingface
