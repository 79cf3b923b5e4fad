#include "core/run/saved_plan.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/own_hash.h"
#include "core/worker/json_fields.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

constexpr int plan_version = 1;

}  // namespace

template <class Visitor>
void fields(Visitor& visit, SavedRun& run) {
  visit.field("label", run.label);
  visit.field("project", run.project);
  visit.optional("workspace", run.workspace);
  visit.field("config", run.config);
  visit.field("id", run.id);
  visit.field("revision", run.revision);
  visit.field("identity", run.identity);
  visit.field("experiment", run.experiment);
  visit.field("origins", run.origins);
  visit.optional("planned_seeds", run.planned_seeds);
  visit.optional("planned_claims", run.planned_claims);
  visit.optional("planned_tables", run.planned_tables);
  visit.optional("planned_config", run.planned_config);
  visit.optional("drawn_order", run.drawn_order);
}

template <class Visitor>
void fields(Visitor& visit, SavedPlan& plan) {
  visit.field("created", plan.created);
  visit.field("command", plan.command);
  visit.field("device", plan.device);
  visit.field("threads", plan.threads);
  visit.field("continue", plan.continue_run);
  visit.field("runs", plan.runs);
}

void write_plan(const std::filesystem::path& file, const SavedPlan& plan) {
  Json json = worker::write_fields(plan);
  json["forge_plan"] = plan_version;
  json["hash"] = own_hash_mark();
  write_output_file(file, with_own_hash(json_text(json, 1) + "\n"));
}

SavedPlan read_plan(const std::filesystem::path& file) {
  const std::string hint = "'forge run CONFIG… --save-plan FILE' writes one";
  constexpr uintmax_t largest_plan = uintmax_t{256} << 20;  // of thousands of runs
  const Json json = read_json_file(file, largest_plan);
  if (!json.is_object() || !json.contains("forge_plan"))
    throw Error("'" + file.string() + "' is no plan of runs", hint);
  if (json.at("forge_plan") != plan_version)
    throw Error("'" + file.string() + "' is a plan of version " + json_text(json.at("forge_plan")) +
                    ", this forge reads version " + std::to_string(plan_version),
                hint);
  return worker::read_fields<SavedPlan>(json, "'" + file.string() + "'");
}

}  // namespace forge::run
