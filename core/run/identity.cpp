#include "core/run/identity.h"

#include "core/base/hash.h"
#include "core/base/json_text.h"
#include "core/config/json.h"
#include "core/protocol/json_fields.h"

namespace forge::run {

using Json = nlohmann::json;

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
}

namespace {

/// Keys that came when there were runs already: where they say what was done before, they are left
/// out, so that those runs keep their keys.
constexpr const char* later_keys[][2] = {{"data", "documents"},
                                         {"data", "separator"},
                                         {"data", "field"},
                                         {"data", "rows"},
                                         {"data", "task"},
                                         {"data", "training_fraction"},
                                         {"train", "bfloat16_weights"},
                                         {"train", "eval_prompts"},
                                         {"train", "selection_rows"},
                                         {"train", "micro_batch_size"}};

void drop_later_keys_at_default(Json& part) {
  static const Json defaults = config::to_json(config::Experiment());
  for (const auto& [section, key] : later_keys) {
    const auto found = part.find(section);
    if (found == part.end() || !found->is_object()) continue;
    const auto value = found->find(key);
    if (value != found->end() && *value == defaults.at(section).at(key)) found->erase(value);
  }
}

/// A backend of forge's own has no command, and its runs keep the keys that they had before others.
void drop_unused_command(Json& part) {
  const auto external = part.find("external");
  if (external != part.end() && external->value("command", Json::array()).empty())
    part.erase(external);
}

/// What stands for nothing in the sources of a mixture: those of weight 0, and where text lies.
void drop_of_sources(Json& part) {
  const Json::json_pointer sources("/data/sources");
  if (!part.contains(sources)) return;
  for (auto source = part[sources].begin(); source != part[sources].end();) {
    if (source->value("weight", 1.0) == 0) {
      source = part[sources].erase(source);
      continue;
    }
    source->erase("path");
    source->erase("evaluation_path");
    ++source;
  }
}

}  // namespace

Json identifying_part(const Json& experiment) {
  Json part = experiment;
  const auto drop = [&part](const char* section, const char* key) {
    const auto found = part.find(section);
    if (found != part.end() && found->is_object()) found->erase(key);
  };
  part.erase("name");
  part.erase("description");
  drop("train", "log_every");
  drop("train", "checkpoint_every");
  drop("train", "keep_checkpoints");
  drop("train", "keep_best");
  drop("train", "max_bad_steps");
  drop("train", "hung_after_seconds");
  drop("train", "initial_weights");
  drop("data", "path");
  drop("data", "evaluation_path");
  drop("tokenizer", "path");
  drop("external", "working_directory");
  drop_of_sources(part);
  drop_later_keys_at_default(part);
  drop_unused_command(part);
  return part;
}

Json to_json(const Identity& identity) {
  Json json = protocol::write_fields(identity);
  // A run whose weights are drawn keeps the key that it had before there were others.
  if (identity.initial_weights.empty()) json.erase("initial_weights");
  return json;
}

Identity identity_from_json(const Json& json) {
  return protocol::read_fields<Identity>(json, "identity of a run");
}

std::string run_key(const Identity& identity) {
  // Keys are sorted and numbers written in their shortest form: one text for one identity.
  return hash_hex(json_text(to_json(identity))).substr(0, 12);
}

}  // namespace forge::run
