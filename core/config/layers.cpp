#include "core/config/layers.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/keys.h"
#include "core/config/reader.h"
#include "core/config/tree.h"

namespace forge::config {
namespace {

void record(Origin& origin, const yaml::Entry& entry, const std::string& layer) {
  for (auto node = entry.overridden.rbegin(); node != entry.overridden.rend(); ++node) {
    origin.replace({layer, short_text(**node), (*node)->origin, "", (*node)->project_folder});
  }
  const yaml::Node& value = *entry.value;
  origin.replace({layer, short_text(value), value.origin, "", value.project_folder});
}

void take_back_excluded(Draft& draft, const std::set<std::string>& given) {
  Experiment& e = draft.experiment;
  const auto only = [&](const char* one, const char* other) {
    return given.count(one) == 1 && given.count(other) == 0;
  };
  if (only("train.max_steps", "train.max_tokens") && e.train.max_steps > 0) {
    if (e.train.max_tokens > 0) derive(draft, "train.max_tokens", "train.max_steps", "0");
    e.train.max_tokens = 0;
  }
  if (only("train.max_tokens", "train.max_steps") && e.train.max_tokens > 0) {
    if (e.train.max_steps > 0) derive(draft, "train.max_steps", "train.max_tokens", "0");
    e.train.max_steps = 0;
  }
  if (only("data.path", "data.source") && !e.data.path.empty()) {
    // A folder may hold either: files of the user's own stay what they are.
    const bool own = e.data.source == "text" || e.data.source == "jsonl";
    const bool json_lines = is_json_lines(e.data.path);
    if (!own || (json_lines && e.data.source == "text")) {
      e.data.source = json_lines ? "jsonl" : "text";
      derive(draft, "data.source", "data.path", e.data.source);
    }
  }
  const auto source = given.lower_bound("data.sources.");
  const bool gives_sources = source != given.end() && starts_with(*source, "data.sources.");
  if (gives_sources && given.count("data.source") == 0 && e.data.source != "mixture") {
    e.data.source = "mixture";
    derive(draft, "data.source", *source, e.data.source);
  }
  const bool generated = e.data.source == "toy_stories" || e.data.source == "task";
  if (only("data.source", "data.path") && generated && !e.data.path.empty()) {
    derive(draft, "data.path", "data.source", "");
    e.data.path.clear();
  }
}

nlohmann::json stored(const Setting& setting) {
  nlohmann::json json = {{"value", setting.text}, {"from", setting.layer}};
  if (setting.origin) json["at"] = setting.origin.describe();
  if (!setting.derived_from.empty()) json["derived_from"] = setting.derived_from;
  return json;
}

Setting default_of(const Key& key) { return {default_layer, default_text(key), {}, ""}; }

/// What nobody gave of a section that somebody named.
void add_defaults_of_named(Draft& draft, const std::string& section, const std::string& name) {
  const std::string mark = section + "." + any_name + ".";
  for (const Key& key : all_keys()) {
    if (!starts_with(key.path, mark) || ends_with(key.path, any_setting)) continue;
    const std::string path = section + "." + name + "." + key.path.substr(mark.size());
    draft.origins.try_emplace(path, Origin{default_of(key), {}});
  }
}

}  // namespace

void Origin::replace(Setting setting) {
  if (set_by.layer != default_layer) overrode.insert(overrode.begin(), std::move(set_by));
  set_by = std::move(setting);
}

void add_defaults_of_all_named(Draft& draft) {
  for (const auto& [name, source] : draft.experiment.data.sources)
    add_defaults_of_named(draft, "data.sources", name);
  for (const auto& [name, block] : draft.experiment.model.blocks)
    add_defaults_of_named(draft, "model.blocks", name);
}

Draft new_draft() {
  Draft draft;
  for (const Key& key : all_keys()) {
    if (!key.is_named()) draft.origins[key.path].set_by = default_of(key);
  }
  return draft;
}

void apply_layer(Draft& draft,
                 const yaml::Node& tree,
                 const std::string& layer,
                 bool plain_is_text,
                 const ProblemSink& on_problem) {
  std::set<std::string> given;
  ReadOptions options;
  options.partial = true;
  options.plain_is_text = plain_is_text;
  options.elsewhere = &all_key_paths();
  options.on_leaf = [&](const std::string& path, const yaml::Entry& entry) {
    given.insert(path);
    Origin& origin = draft.origins[path];
    if (origin.set_by.layer.empty()) origin.set_by = default_of(*find_key(path));
    record(origin, entry, layer);
  };
  options.on_problem = on_problem;
  attempt(
      on_problem, Problem::Kind::wrong_value, [&] { read_into(tree, draft.experiment, options); });
  add_defaults_of_all_named(draft);
  take_back_excluded(draft, given);
}

void derive(Draft& draft,
            const std::string& path,
            const std::string& from,
            const std::string& text) {
  Origin& origin = draft.origins[path];
  const Setting& cause = draft.origins[from].set_by;
  Setting derived{cause.layer, text, cause.origin, from};
  const bool derived_before = origin.set_by.derived_from == from;
  if (derived_before) {
    origin.set_by = std::move(derived);
  } else {
    origin.replace(std::move(derived));
  }
}

nlohmann::json to_json(const Origins& origins) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [path, origin] : origins) {
    nlohmann::json entry = stored(origin.set_by);
    for (const Setting& setting : origin.overrode) entry["overrode"].push_back(stored(setting));
    json[path] = std::move(entry);
  }
  return json;
}

}  // namespace forge::config
