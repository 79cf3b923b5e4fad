#include "core/huggingface/export_model.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <regex>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/huggingface/release_config.h"
#include "core/model/parameters.h"
#include "core/model/weights/checkpoint.h"
#include "core/model/weights/model_files.h"
#include "core/model/weights/release_names.h"

namespace forge::huggingface {

using OrderedJson = nlohmann::ordered_json;

OrderedJson special_tokens_map(const data::Tokenizer& tokenizer) {
  const data::Vocabulary& vocabulary = tokenizer.vocabulary();
  std::vector<char> has_role(vocabulary.tokens.size(), 0);
  OrderedJson map = OrderedJson::object();
  const std::pair<const char*, int32_t> roles[] = {{"bos_token", vocabulary.bos_id},
                                                   {"eos_token", vocabulary.eos_id},
                                                   {"unk_token", vocabulary.unk_id},
                                                   {"pad_token", vocabulary.pad_id}};
  for (const auto& [name, id] : roles) {
    if (id < 0) continue;
    map[name] = vocabulary.tokens[static_cast<size_t>(id)];
    has_role[static_cast<size_t>(id)] = 1;
  }
  OrderedJson others = OrderedJson::array();
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.special[id] && !has_role[id]) others.push_back(vocabulary.tokens[id]);
  }
  if (!others.empty()) map["additional_special_tokens"] = others;
  return map;
}

OrderedJson tokenizer_config(const data::Tokenizer& tokenizer, int64_t max_positions) {
  const data::Vocabulary& vocabulary = tokenizer.vocabulary();
  OrderedJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  OrderedJson added = OrderedJson::object();
  for (const data::AddedToken& token : vocabulary.added) {
    const size_t id = static_cast<size_t>(token.id);
    added[std::to_string(id)] = {{"content", vocabulary.tokens[id]},
                                 {"lstrip", token.lstrip},
                                 {"normalized", token.normalized},
                                 {"rstrip", token.rstrip},
                                 {"single_word", token.single_word},
                                 {"special", vocabulary.special[id] != 0}};
  }
  config["added_tokens_decoder"] = added;
  const OrderedJson roles = special_tokens_map(tokenizer);
  for (const auto& [role, token] : roles.items()) config[role] = token;
  config["clean_up_tokenization_spaces"] = false;
  config["model_max_length"] = max_positions;
  return config;
}

OrderedJson generation_config(const data::Tokenizer& tokenizer) {
  OrderedJson config = OrderedJson::object();
  OrderedJson ends = OrderedJson::array();
  for (const int32_t id : {tokenizer.eos_id(), tokenizer.bos_id()}) {
    if (id >= 0) ends.push_back(id);
  }
  if (tokenizer.bos_id() >= 0) config["bos_token_id"] = tokenizer.bos_id();
  if (!ends.empty()) config["eos_token_id"] = ends;
  if (tokenizer.pad_id() >= 0) config["pad_token_id"] = tokenizer.pad_id();
  return config;
}

namespace {

struct TorchDtype {
  weights::Dtype dtype;
  const char* name;
};
constexpr TorchDtype torch_dtypes[] = {{weights::Dtype::f32, "float32"},
                                       {weights::Dtype::bf16, "bfloat16"},
                                       {weights::Dtype::f16, "float16"}};

const char* torch_name(weights::Dtype dtype) {
  for (const TorchDtype& known : torch_dtypes) {
    if (known.dtype == dtype) return known.name;
  }
  throw Error("a model is written in float32, bfloat16 or float16");
}

/// Without links and a slash at the end: it is the folder itself that is renamed.
fs::path real_path(const fs::path& folder) {
  if (folder.empty()) throw Error("the name of the folder is empty");
  const fs::path path = fs::weakly_canonical(fs::absolute(folder));
  return path.has_filename() ? path : path.parent_path();
}

/// Whether the writer of a model folder gives its files such a name.
bool is_written_name(const std::string& name) {
  static const std::set<std::string> names = {"config.json",
                                              "generation_config.json",
                                              "tokenizer.json",
                                              "tokenizer_config.json",
                                              "special_tokens_map.json",
                                              weights::model_file,
                                              weights::model_index_file};
  static const std::regex part("model-[0-9]+-of-[0-9]+\\.safetensors");
  return names.count(name) > 0 || std::regex_match(name, part);
}

bool is_model_config(const fs::path& file) {
  if (!fs::is_regular_file(file)) return false;
  const nlohmann::json json = try_parse_json(read_file(file));
  return json.is_object() && json.contains("model_type");
}

/// What in the folder is none of a model folder's files, and may be dear to somebody; "" for
/// nothing.
std::string foreign_entry(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!fs::is_regular_file(entry.symlink_status()) || !is_written_name(name)) return name;
  }
  return is_model_config(folder / "config.json") ? "" : "config.json";
}

void require_place(const fs::path& folder, bool replace) {
  const std::string name = "'" + shown_path(folder) + "'";
  if (fs::is_symlink(folder))
    throw Error(name + " is a link to a folder that is not there",
                "make that folder, or name another one");
  if (!fs::exists(folder)) return;
  if (!fs::is_directory(folder)) throw Error(name + " is a file", "name a folder");
  if (fs::is_empty(folder)) return;
  if (!replace) throw Error(name + " is not empty", "name another folder, or give --force");
  // It is exchanged, and who stands in it would see nothing of the new one.
  if (is_same_path(folder, "."))
    throw Error(name + " is the current folder, and a model folder is replaced as a whole",
                "change to another folder and name it from there");
  const std::string foreign = foreign_entry(folder);
  if (foreign.empty()) return;
  throw Error(name + " is no model folder, or holds more than one: it is not replaced, whatever " +
                  "--force says, because of '" + foreign + "'",
              "name another folder, or move away what is no file of a model");
}

/// Gives the folder that takes another one's place its group and rights, and, where this user may,
/// its owner.
void take_rights(const fs::path& aside, const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0)
    throw system_error("read '" + folder.string() + "'", errno);
  const bool is_given = ::chown(aside.c_str(), status.st_uid, status.st_gid) == 0 ||
                        ::chown(aside.c_str(), uid_t(-1), status.st_gid) == 0;
  // Bits for a group that it has not got would let others in.
  constexpr mode_t all = 07777, of_group = S_ISGID | S_IRWXG;
  if (::chmod(aside.c_str(), status.st_mode & (is_given ? all : all & ~of_group)) != 0)
    throw system_error("set the rights of '" + aside.string() + "'", errno);
}

/// Moves what was written into a folder that stays: somebody may stand in it, or share it.
/// config.json, which makes it a model folder, comes last, as it was written first.
void move_files(const fs::path& aside,
                const fs::path& folder,
                const std::vector<weights::WrittenFile>& files) {
  for (auto file = files.rbegin(); file != files.rend(); ++file)
    rename_path(aside / file->name, folder / file->name);
  sync_path(folder);
}

std::optional<data::Tokenizer> load_fitting_tokenizer(const ExportSource& source) {
  if (source.tokenizer.empty()) return std::nullopt;
  data::Tokenizer tokenizer = data::load_tokenizer(source.tokenizer);
  if (tokenizer.vocab_size() <= source.model.vocab_size) return tokenizer;
  throw Error("the tokenizer '" + shown_path(source.tokenizer) + "' has " +
              with_thousands(tokenizer.vocab_size()) + " entries, the model " +
              with_thousands(source.model.vocab_size));
}

/// Writes the files of a model folder and lists them.
class Writer {
 public:
  explicit Writer(const fs::path& folder) : folder_(folder) {}

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
  const fs::path& folder_;
  std::vector<weights::WrittenFile> files_;
};

}  // namespace

weights::Dtype dtype_from_name(const std::string& name) {
  for (const TorchDtype& known : torch_dtypes) {
    if (known.name == name) return known.dtype;
  }
  const auto names = texts_of(torch_dtypes, &TorchDtype::name);
  throw Error("'" + name + "' is not one of " + join(names, ", "), did_you_mean(name, names));
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

  const bool is_there = fs::exists(folder), stays = is_there && fs::is_empty(folder);
  // Inside of a folder that stays: it may be all that this user may write to.
  FolderWriter aside(stays ? folder / "model" : folder);
  Writer writer(aside.path());
  writer.json("config.json", config.json);
  if (tokenizer) {
    writer.json("generation_config.json", generation_config(*tokenizer));
    writer.text("tokenizer.json", read_file(source.tokenizer));
    writer.json("tokenizer_config.json", tokenizer_config(*tokenizer, source.max_positions));
    writer.json("special_tokens_map.json", special_tokens_map(*tokenizer));
  } else {
    writer.json("generation_config.json", OrderedJson::object());
  }
  if (is_released_linear(config.architecture)) {
    writer.weights(weights::ReleaseTensors(source.model, tensors).tensors(), options);
  } else {
    writer.weights(tensors, options);
  }
  exported.files = writer.take();
  if (stays) {
    move_files(aside.path(), folder, exported.files);
    return exported;
  }
  if (is_there) take_rights(aside.path(), folder);
  aside.replace();
  return exported;
}

}  // namespace forge::huggingface
