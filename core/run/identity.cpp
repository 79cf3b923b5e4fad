#include "core/run/identity.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/config/own_blocks.h"
#include "core/worker/json_fields.h"

namespace forge::run {

using Json = nlohmann::json;

namespace {

/// Keys that cannot change a number; `parallel` with all that is in it.
constexpr const char* keys_of_no_number[] = {"name",
                                             "description",
                                             "parallel",
                                             "train.log_every",
                                             "train.checkpoint_every",
                                             "train.keep_checkpoints",
                                             "train.keep_best",
                                             "train.max_bad_steps",
                                             "train.hung_after_seconds",
                                             "train.recompute"};

/// Sources of weight 0 contribute nothing; paths do not matter, because hashes stand for the texts.
void drop_inactive_sources(Json& part) {
  const Json::json_pointer place("/data/sources");
  if (!part.contains(place) || !part[place].is_object()) return;
  Json& sources = part[place];
  for (auto source = sources.begin(); source != sources.end();) {
    if (!source->is_object()) {
      ++source;
      continue;
    }
    const auto weight = source->find("weight");
    if (weight != source->end() && weight->is_number() && *weight == 0) {
      source = sources.erase(source);
      continue;
    }
    source->erase("path");
    source->erase("evaluation_path");
    ++source;
  }
}

}  // namespace

bool changes_numbers(const std::string& key) {
  return std::none_of(
      std::begin(keys_of_no_number), std::end(keys_of_no_number), [&](const std::string& other) {
        return key == other || starts_with(key, other + ".");
      });
}

void drop_grammar(Json& experiment) {
  const Json::json_pointer task("/data/task");
  if (experiment.contains(task) && experiment[task].is_object()) experiment[task].erase("grammar");
}

Json identity_config(const Json& experiment) {
  Json part = experiment;
  if (!part.is_object()) return part;
  const auto drop = [&part](const std::string& key) {
    const size_t dot = key.find('.');
    if (dot == key.npos) {
      part.erase(key);
      return;
    }
    const auto found = part.find(key.substr(0, dot));
    if (found != part.end() && found->is_object()) found->erase(key.substr(dot + 1));
  };
  for (const char* key : keys_of_no_number) drop(key);
  for (const char* key : {"train.initial_weights",
                          "data.path",
                          "data.evaluation_path",
                          "tokenizer.path",
                          "external.working_directory"})
    drop(key);
  drop_grammar(part);
  drop_inactive_sources(part);
  config::reduce_own_blocks(part);
  // A backend of forge's own has no command, and its section says nothing.
  const auto external = part.find("external");
  if (external != part.end() && external->is_object() &&
      external->value("command", Json::array()).empty())
    part.erase(external);
  return part;
}

std::vector<Json::json_pointer> places_of_data(const Json& config) {
  using Pointer = Json::json_pointer;
  std::vector<Pointer> places = {Pointer("/data/path"),
                                 Pointer("/data/evaluation_path"),
                                 Pointer("/data/task/grammar"),
                                 Pointer("/tokenizer/path")};
  const Pointer sources("/data/sources");
  if (!config.contains(sources) || !config[sources].is_object()) return places;
  for (const auto& [name, source] : config[sources].items()) {
    places.push_back(sources / name / "path");
    places.push_back(sources / name / "evaluation_path");
  }
  return places;
}

std::string config_key(const Json& experiment) {
  Json part = identity_config(experiment);
  if (part.is_object()) part.erase("seed");
  return hash_hex(json_text(part)).substr(0, 12);
}

std::string identity_text(Identity identity) {
  // Keys are sorted and numbers written in their shortest form.
  Json experiment = std::move(identity.experiment);
  identity.experiment = nullptr;
  const bool has_program = !identity.program.empty();
  Json json = worker::write_fields(std::move(identity));
  if (!has_program) json.erase("program");     // forge's own backends have the keys that they had
  json["experiment"] = std::move(experiment);  // copied once and not thrice: runs have many keys
  return json_text(json);
}

std::string identity_hash(Identity identity) {
  return hash_hex(identity_text(std::move(identity)));
}

std::string run_key(Identity identity) { return identity_hash(std::move(identity)).substr(0, 12); }

bool is_same_identity(const Identity& left, const Identity& right) {
  return identity_text(left) == identity_text(right);
}

namespace {

const std::map<std::string, std::string>& meanings() {
  static const std::map<std::string, std::string> all = {
      {"data_fingerprint", "the texts, or how they were cut into rows"},
      {"tokenizer_fingerprint", "the tokenizer's entries"},
      {"backend", "the program that trains"},
      {"device_type", "the kind of device"},
      {"threads", "CPU threads, which the order of sums depends on"},
      {"numerics_version", "the backend's arithmetic, which a newer version changed"},
      {"initial_weights", "the weights that it begins from"},
      {"program", "the files that the backend's command names"}};
  return all;
}

void compare(const Json& left, const Json& right, std::vector<IdentityDifference>& out) {
  const std::map<std::string, Json> ours = dotted_leaves(left), theirs = dotted_leaves(right);
  std::map<std::string, Json> keys = ours;
  keys.insert(theirs.begin(), theirs.end());
  const auto text = [](const std::map<std::string, Json>& leaves, const std::string& key) {
    const auto found = leaves.find(key);
    return found == leaves.end() ? "" : json_text(found->second);
  };
  for (const auto& [key, ignored] : keys) {
    const std::string of_left = text(ours, key), of_right = text(theirs, key);
    if (of_left == of_right) continue;
    const auto meaning = meanings().find(key);
    out.push_back({key, of_left, of_right, meaning == meanings().end() ? "" : meaning->second});
  }
}

}  // namespace

std::map<std::string, Json> dotted_leaves(const Json& json) {
  std::map<std::string, Json> leaves;
  if (json.empty()) return leaves;
  const Json flat = json.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string key = pointer.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    leaves[key] = value;
  }
  return leaves;
}

std::vector<IdentityDifference> config_differences(const Json& left, const Json& right) {
  std::vector<IdentityDifference> out;
  compare(left, right, out);
  return out;
}

std::vector<IdentityDifference> identity_differences(const Identity& left, const Identity& right) {
  std::vector<IdentityDifference> out = config_differences(left.experiment, right.experiment);
  Json parts[] = {worker::write_fields(left), worker::write_fields(right)};
  for (Json& part : parts) part.erase("experiment");
  compare(parts[0], parts[1], out);
  return out;
}

}  // namespace forge::run
