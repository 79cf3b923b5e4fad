#include "core/run/saved_plan.h"

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/run/why.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

constexpr int version = 1;

Json to_json(const SavedRun& run) {
  return {{"label", run.label},
          {"project", run.project},
          {"config", run.config},
          {"id", run.id},
          {"revision", run.revision},
          {"identity", run::to_json(run.identity)},
          {"experiment", run.experiment},
          {"origins", run.origins}};
}

SavedRun run_from_json(const Json& json) {
  SavedRun run;
  run.label = json.at("label").get<std::string>();
  run.project = json.at("project").get<std::string>();
  run.config = json.at("config").get<std::string>();
  run.id = json.at("id").get<std::string>();
  run.revision = json.at("revision").get<std::string>();
  run.identity = identity_from_json(json.at("identity"));
  run.experiment = json.at("experiment");
  run.origins = json.at("origins");
  return run;
}

SavedPlan from_json(const Json& json) {
  SavedPlan plan;
  plan.created = json.at("created").get<std::string>();
  plan.command = json.at("command").get<std::string>();
  plan.device = json.at("device").get<std::string>();
  plan.threads = json.at("threads").get<int>();
  plan.continue_run = json.at("continue").get<std::string>();
  for (const Json& run : json.at("runs")) plan.runs.push_back(run_from_json(run));
  return plan;
}

}  // namespace

void write_plan(const std::filesystem::path& file, const SavedPlan& plan) {
  Json json = {{"forge_plan", version},
               {"created", plan.created},
               {"command", plan.command},
               {"device", plan.device},
               {"threads", plan.threads},
               {"continue", plan.continue_run},
               {"runs", Json::array()}};
  for (const SavedRun& run : plan.runs) json["runs"].push_back(to_json(run));
  write_file_atomic(file, json_text(json, 1) + "\n");
}

SavedPlan read_plan(const std::filesystem::path& file) {
  const std::string hint = "'forge run CONFIG… --save-plan FILE' writes one";
  try {
    const Json json = try_parse_json(read_file(file));
    if (!json.is_object() || !json.contains("forge_plan"))
      throw Error("'" + file.string() + "' is no plan of runs", {}, hint);
    if (json.at("forge_plan") != version)
      throw Error("'" + file.string() + "' is a plan of version " +
                      json_text(json.at("forge_plan")) + ", this forge reads version " +
                      std::to_string(version),
                  {},
                  hint);
    return from_json(json);
  } catch (const Json::exception& error) {
    throw Error("'" + file.string() + "' is a damaged plan: " + error.what(), {}, hint);
  }
}

PlannedRun plan_as_saved(const RunInputs& inputs,
                         const SavedRun& saved,
                         const std::filesystem::path& runs_dir) {
  const std::vector<IdentityDifference> found =
      differences(saved.identity, plan_run(inputs, runs_dir, false).record.identity);
  if (!found.empty()) {
    std::vector<std::string> texts;
    for (const IdentityDifference& difference : found)
      texts.push_back(difference.what + " was " + difference.left + " and is " + difference.right);
    throw Error(saved.label + ": the plan cannot be executed as it is: " + join(texts, "; "),
                {},
                "run where the plan was made, or make it anew with --save-plan");
  }
  return plan_under(saved.id, inputs, runs_dir);
}

}  // namespace forge::run
