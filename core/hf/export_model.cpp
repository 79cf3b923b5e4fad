#include "core/hf/export_model.h"

#include <unistd.h>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/data/tokenizer_json.h"
#include "core/hf/model_weights.h"
#include "core/hf/tokenizer_files.h"
#include "core/model/parameters.h"
#include "core/weights/checkpoint.h"

namespace forge::hf {
namespace {

using OrderedJson = nlohmann::ordered_json;

const char* torch_name(weights::Dtype dtype) {
  switch (dtype) {
    case weights::Dtype::f32: return "float32";
    case weights::Dtype::bf16: return "bfloat16";
    case weights::Dtype::f16: return "float16";
    default: throw Error("a model is written in float32, bfloat16 or float16");
  }
}

/// Without links and a slash at the end: it is the folder itself that is renamed.
fs::path real_path(const fs::path& folder) {
  if (folder.empty()) throw Error("the name of the folder is empty");
  const fs::path path = fs::weakly_canonical(fs::absolute(folder));
  return path.has_filename() ? path : path.parent_path();
}

/// Whether a folder holds what the writer of a model folder puts there and nothing that may be
/// dear to somebody: plain files, among them config.json.
bool may_be_replaced(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) return false;
  }
  return fs::is_regular_file(folder / "config.json");
}

void require_place(const fs::path& folder, bool replace) {
  if (!fs::exists(folder)) return;
  const std::string name = "'" + shown_path(folder) + "'";
  if (!fs::is_directory(folder)) throw Error(name + " is a file", {}, "name a folder");
  if (fs::is_empty(folder)) return;
  if (!replace) throw Error(name + " is not empty", {}, "name another folder, or give --force");
  if (may_be_replaced(folder)) return;
  throw Error(name + " is no model folder: it is not replaced, whatever --force says",
              {},
              "a model folder holds config.json and other files, and no folders");
}

std::optional<data::Tokenizer> load_fitting_tokenizer(const ExportSource& source) {
  if (source.tokenizer.empty()) return std::nullopt;
  data::Tokenizer tokenizer = data::load_tokenizer(source.tokenizer);
  if (tokenizer.vocab_size() <= source.model.vocab_size) return tokenizer;
  throw Error("the tokenizer '" + shown_path(source.tokenizer) + "' has " +
              with_thousands(tokenizer.vocab_size()) + " entries, the model " +
              with_thousands(source.model.vocab_size));
}

/// The files of a model folder as they are written, one after another.
class Writer {
 public:
  explicit Writer(fs::path folder) : folder_(std::move(folder)) { make_directories(folder_); }

  void text(const std::string& name, const std::string& content) {
    write_file_atomic(folder_ / name, content);
    files_.push_back({name, static_cast<int64_t>(content.size())});
  }
  void json(const std::string& name, const OrderedJson& json) {
    text(name, json_text(json, 2) + "\n");
  }
  void weights(const std::map<std::string, weights::TensorView>& tensors,
               const ExportOptions& options) {
    const auto written =
        weights::write_model_files(folder_, tensors, options.dtype, options.shard_bytes);
    files_.insert(files_.end(), written.begin(), written.end());
  }
  std::vector<weights::WrittenFile> take() { return std::move(files_); }

 private:
  fs::path folder_;
  std::vector<weights::WrittenFile> files_;
};

}  // namespace

weights::Dtype dtype_from_name(const std::string& name) {
  for (const weights::Dtype dtype :
       {weights::Dtype::f32, weights::Dtype::bf16, weights::Dtype::f16}) {
    if (name == torch_name(dtype)) return dtype;
  }
  throw Error("'" + name + "' is not one of float32, bfloat16, float16",
              {},
              did_you_mean(name, {"float32", "bfloat16", "float16"}));
}

Exported export_model(const ExportSource& source,
                      const fs::path& given_folder,
                      const ExportOptions& options) {
  const fs::path folder = real_path(given_folder);
  require_place(folder, options.replace);
  const std::optional<data::Tokenizer> tokenizer = load_fitting_tokenizer(source);
  weights::read_checkpoint_state(source.checkpoint);  // every byte as it was written
  const weights::ModelFiles files(source.checkpoint);
  const auto tensors = model_weights(source.model, files.tensors());

  ConfigFacts facts;
  facts.max_positions = source.max_positions;
  facts.dtype = torch_name(options.dtype);
  if (tokenizer) {
    facts.bos_id = tokenizer->bos_id();
    facts.eos_id = tokenizer->eos_id();
    facts.pad_id = tokenizer->pad_id();
  }
  const WrittenConfig config = write_config(source.model, facts);
  Exported exported;
  exported.architecture = config.architecture;
  exported.forge_keys = config.forge_keys;
  exported.parameters = model::parameter_count(source.model);

  const fs::path aside = aside_path(folder);
  make_directories(folder.parent_path());
  try {
    Writer writer(aside);
    writer.json("config.json", config.json);
    if (tokenizer) {
      writer.json("generation_config.json", generation_config(*tokenizer));
      writer.text("tokenizer.json", read_file(source.tokenizer));
      writer.json("tokenizer_config.json", tokenizer_config(*tokenizer, source.max_positions));
      writer.json("special_tokens_map.json", special_tokens_map(*tokenizer));
    } else {
      writer.json("generation_config.json", OrderedJson::object());
    }
    writer.weights(tensors, options);
    replace_folder(aside, folder);
    exported.files = writer.take();
  } catch (...) {
    std::error_code ignored;  // the first error is the one to tell
    remove_tree(aside, ignored);
    throw;
  }
  return exported;
}

}  // namespace forge::hf
