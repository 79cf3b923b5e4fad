#include "app/run_report.h"

#include <cmath>
#include <cstdio>

#include "app/terminal.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/report/display_text.h"
#include "core/report/disturbance.h"
#include "core/store/run_query.h"

namespace forge::app {
namespace {

std::string loss_text(const std::optional<double>& loss) {
  if (!loss) return "-";
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4f", *loss);
  return digits;
}

std::string score_text(const protocol::Score& score) {
  return loss_text(score.value) + "  (" + with_thousands(score.count) +
         (score.count == 1 ? " case)" : " cases)");
}

std::string speed_text(const std::optional<double>& speed) {
  return speed ? with_thousands(std::llround(*speed)) : "-";
}

std::string memory_text(const std::optional<int64_t>& bytes) {
  return bytes ? human_bytes(double(*bytes)) : "-";
}

std::string status_text(const store::RunSummary& run) {
  if (run.status == run::RunState::running)
    return "running " + std::to_string(store::progress_percent(run)) + "%";
  return run::name_of(run.status);
}

Style style_of(run::RunState status) {
  switch (status) {
    case run::RunState::completed: return Style::green;
    case run::RunState::failed: return Style::red;
    case run::RunState::stopped: return Style::yellow;
    default: return Style::plain;
  }
}

/// How a run's numbers are computed, e.g. "bfloat16, weights master_copies, not deterministic".
std::string precision_text(const nlohmann::json& config) {
  if (!config.is_object() || !config.contains("train")) return "-";
  const nlohmann::json& train = config.at("train");
  std::string text = report::printable(train.value("precision", "-"));
  const std::string weights = train.value("bfloat16_weights", "none");
  if (weights != "none") text += ", weights " + report::printable(weights);
  const auto deterministic = train.find("deterministic");
  if (deterministic == train.end() || !deterministic->is_boolean()) return text;
  return text + (deterministic->get<bool>() ? ", deterministic" : ", not deterministic");
}

/// A value of a column that no other function knows how to print.
std::string column_text(const nlohmann::json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return report::printable(value.get<std::string>());
  if (value.is_array()) {
    std::vector<std::string> words;
    for (const nlohmann::json& word : value) words.push_back(column_text(word));
    return words.empty() ? "-" : join(words, ", ");
  }
  return json_text(value);
}

}  // namespace

std::string result_text(const store::RunSummary& run,
                        const nlohmann::json& config,
                        const std::string& folder,
                        bool colour) {
  std::string head = styled(run.config, Style::bold, colour) + "  " +
                     styled(status_text(run), style_of(run.status), colour);
  if (run.wall_seconds) head += "  " + human_duration(*run.wall_seconds);
  if (run.status == run::RunState::stopped) head += "  at step " + std::to_string(run.step);
  std::vector<std::vector<std::string>> lines;
  if (run.eval_loss)
    lines.push_back({"  eval loss", loss_text(run.eval_loss) + "  (" + run.evaluation + ")"});
  for (const auto& [name, score] : run.scores) {
    lines.push_back({"  " + report::printable(name), score_text(score)});
  }
  if (run.train_loss) lines.push_back({"  train loss", loss_text(run.train_loss)});
  if (run.tokens_per_second)
    lines.push_back({"  speed", speed_text(run.tokens_per_second) + " tok/s"});
  if (const std::string disturbance = report::disturbance_of(run); !disturbance.empty())
    lines.push_back({"", disturbance});
  if (run.micro_batch_size)
    lines.push_back({"  micro-batch",
                     with_thousands(*run.micro_batch_size) +
                         (*run.micro_batch_size == 1 ? " row" : " rows") + " at once"});
  if (run.peak_memory_bytes) {
    lines.push_back({"  peak memory",
                     memory_text(run.peak_memory_bytes) + " in tensors, " +
                         memory_text(run.peak_resident_bytes) + " resident"});
  }
  if (run.parameters > 0) lines.push_back({"  parameters", with_thousands(run.parameters)});
  lines.push_back({"  profile",
                   run.profile + "  (" + with_thousands(run.tokens) + " tokens, seed " +
                       std::to_string(run.seed) + ", " + run.device_name + ")"});
  lines.push_back({"  precision", precision_text(config)});
  if (!run.tags.empty()) lines.push_back({"  tags", join(run.tags, ", ")});
  if (!run.note.empty()) lines.push_back({"  note", report::printable(run.note)});
  if (run.archived != 0) lines.push_back({"  archived", "not in lists and tables"});
  lines.push_back({"  run", folder});
  return head + "\n" + aligned(lines);
}

std::string result_table(const std::vector<store::RunSummary>& runs, bool colour) {
  std::vector<std::vector<std::string>> lines = {{"Config",
                                                  "Status",
                                                  "Profile",
                                                  "Seed",
                                                  "Eval Loss",
                                                  "Train Loss",
                                                  "Tok/s",
                                                  "Memory",
                                                  "Parameters",
                                                  "Run"}};
  for (const store::RunSummary& run : runs) {
    lines.push_back({run.config,
                     status_text(run),
                     run.profile,
                     std::to_string(run.seed),
                     loss_text(run.eval_loss),
                     loss_text(run.train_loss),
                     speed_text(run.tokens_per_second),
                     memory_text(run.peak_memory_bytes),
                     run.parameters > 0 ? with_thousands(run.parameters) : "-",
                     run.id});
  }
  const std::string table = aligned(lines, {3, 4, 5, 6, 7, 8});
  const size_t head = table.find('\n');
  return styled(table.substr(0, head), Style::bold, colour) + table.substr(head);
}

std::string column_table(const std::vector<store::RunSummary>& runs,
                         const std::vector<std::string>& columns) {
  std::vector<std::vector<std::string>> lines = {columns};
  for (const store::RunSummary& run : runs) {
    const nlohmann::json values = store::columns_of(run);
    lines.emplace_back();
    for (const std::string& column : columns)
      lines.back().push_back(column_text(values.at(column)));
  }
  return aligned(lines);
}

nlohmann::json to_json(const store::RunSummary& run) {
  nlohmann::json json = store::columns_of(run);
  json["scores"] = to_json(run.scores);
  return json;
}

nlohmann::json to_json(const std::map<std::string, protocol::Score>& scores) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, score] : scores) {
    json[name] = {{"value", score.value}, {"count", score.count}};
  }
  return json;
}

nlohmann::json to_json(const protocol::Evaluation& evaluation) {
  return {{"step", evaluation.step},
          {"loss", evaluation.loss},
          {"tokens", evaluation.tokens},
          {"seconds", evaluation.seconds},
          {"scores", to_json(evaluation.scores)}};
}

}  // namespace forge::app
