#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace forge::run {

/// What makes two runs the same run. Everything here may change a loss; nothing else may.
struct Identity {
  nlohmann::json experiment;  ///< identity_config of the resolved config
  std::string data_fingerprint;
  std::string tokenizer_fingerprint;
  std::string backend;          ///< name of the backend, e.g. "libtorch"
  std::string device_type;      ///< cpu | cuda
  int threads = 0;              ///< on a CPU; 0 on other devices
  int numerics_version = 0;     ///< of the backend
  std::string initial_weights;  ///< hash of the weights that it begins from, "": they are drawn
  std::string program = {};  ///< program_hash of an external backend's command, "" for forge's own
};

template <class Visitor>
void fields(Visitor& visit, Identity& identity) {
  visit.field("experiment", identity.experiment);
  visit.field("data_fingerprint", identity.data_fingerprint);
  visit.field("tokenizer_fingerprint", identity.tokenizer_fingerprint);
  visit.field("backend", identity.backend);
  visit.field("device_type", identity.device_type);
  visit.field("threads", identity.threads);
  visit.field("numerics_version", identity.numerics_version);
  visit.optional("initial_weights", identity.initial_weights);
  visit.optional("program", identity.program);
}

/// Whether another value of the config's key can change a number that a run finds. Those that say
/// what is logged, kept, waited for and by how many processes it is trained cannot.
bool changes_numbers(const std::string& key);

/// The experiment's JSON without the keys that cannot change a number (changes_numbers); and
/// without data.path, data.evaluation_path,
/// data.task.grammar, tokenizer.path and train.initial_weights, for which hashes of their content
/// stand: the same text in another folder is the same data, of each source of a mixture too; a
/// source of weight 0 is none. Where an external backend is started is left out too:
/// Identity::program stands for the files that it finds there. Its command and environment, which
/// may well change what it computes, are not left out. Of a block of one's own the hash of its
/// source is there, and neither its file's place nor its description. train.deterministic is there
/// as it came out on the run's device.
nlohmann::json identity_config(const nlohmann::json& experiment);

/// Takes out the path of a task's grammar, which a fingerprint of the data stands for. Runs were
/// made when it was part of an identity.
void drop_grammar(nlohmann::json& experiment);

/// A key of identity_config without the seed: what all seeds of a config have in common.
std::string config_key(const nlohmann::json& experiment);
/// In the place of the key of a config that is none without settings.
constexpr const char* no_own_config = "none";

/// Where a config names files of text or a tokenizer's, those of the sources of a mixture too: of
/// these paths an identity knows nothing.
std::vector<nlohmann::json::json_pointer> places_of_data(const nlohmann::json& config);

/// The identity's canonical JSON: one text for one identity.
std::string identity_text(Identity identity);

/// The hash of that text.
std::string identity_hash(Identity identity);

/// Its first 12 hexadecimal digits, for names and lists. Somebody can aim at a key: whether two
/// runs are one, is_same_identity tells.
std::string run_key(Identity identity);

bool is_same_identity(const Identity& left, const Identity& right);

/// The leaves of a JSON value by dotted keys, "optimizer.lr"; elements of lists by their number.
std::map<std::string, nlohmann::json> dotted_leaves(const nlohmann::json& json);

/// One thing in which two runs' identities differ.
struct IdentityDifference {
  std::string what;         ///< a dotted key of the config, or a part: "data", "device_type", …
  std::string left, right;  ///< as JSON, "" where one of them does not have it
  std::string meaning;      ///< what that part is, "" for a key of the config
};

/// Those between the configs of two identities.
std::vector<IdentityDifference> config_differences(const nlohmann::json& left,
                                                   const nlohmann::json& right);

/// All of them, keys of the config first; none for two runs of one identity.
std::vector<IdentityDifference> identity_differences(const Identity& left, const Identity& right);

}  // namespace forge::run
