#include "core/upkeep/data_needs.h"

#include "core/base/fs.h"
#include "core/config/data_sources.h"
#include "core/fetch/public_texts.h"

namespace forge::upkeep {
namespace {

/// The public text that a path is of: that of a corpus under forge's own folder, wherever it lay.
std::string public_text_of(const fs::path& path) {
  for (const fetch::PublicText& text : fetch::public_texts()) {
    const std::string folder = "corpora/" + text.name;
    const std::string whole = path.string() + "/";
    if (whole.find("/" + folder + "/") != std::string::npos) return text.name;
  }
  return "";
}

void add_text(const std::string& source, const std::string& path, std::vector<DataNeed>& needs) {
  if (path.empty()) return;
  std::error_code unreadable;
  DataNeed need{source, path, "", fs::exists(path, unreadable)};
  const std::string known = public_text_of(path);
  need.how = known.empty()
                 ? "a text of the run's owner: bring it here and name it with --set data.path=…; "
                   "the data fingerprint tells whether it is the same"
                 : "forge data get " + known;
  needs.push_back(std::move(need));
}

void add(const config::DataConfig& data, const std::string& name, std::vector<DataNeed>& needs) {
  if (data.source == "mixture") {
    for (const auto& [source, part] : data.sources) {
      if (part.weight > 0) add(config::data_of_source(data, part), source, needs);
    }
    return;
  }
  if (data.path.empty()) {
    needs.push_back(
        {name.empty() ? data.source : name, "", "forge makes it from the config", true});
    return;
  }
  add_text(name.empty() ? data.source : name, data.path, needs);
  add_text(name.empty() ? data.source : name, data.evaluation_path, needs);
}

}  // namespace

nlohmann::json to_json(const DataNeed& need) {
  return {{"source", need.source}, {"path", need.path}, {"how", need.how}, {"here", need.is_here}};
}

std::vector<DataNeed> data_needs(const config::Experiment& experiment) {
  std::vector<DataNeed> needs;
  add(experiment.data, "", needs);
  add_text("tokenizer", experiment.tokenizer.path, needs);
  return needs;
}

}  // namespace forge::upkeep
