#include "core/data/tasks/task.h"

#include "core/base/error.h"
#include "core/data/tasks/lano.h"
#include "core/data/tasks/tasks.h"

namespace forge::data::tasks {

void Instance::clear() {
  tokens.clear();
  scored.clear();
  answers.clear();
}

void Instance::add(int32_t token, bool carries_loss) {
  tokens.push_back(token);
  scored.push_back(carries_loss);
}

void Scores::add(const std::string& name, double total, int64_t count) {
  Sum& sum = sums_[name];
  sum.total += total;
  sum.count += count;
}

std::optional<double> Scores::mean(const std::string& name) const {
  const auto found = sums_.find(name);
  if (found == sums_.end() || found->second.count == 0) return std::nullopt;
  return found->second.mean();
}

Prompt Task::prompt(const Instance&) const {
  throw Error("the task " + name() + " is scored teacher forced, without a prompt");
}

DepoConfig depo1(int max_nodes, int max_hops) { return {max_nodes, max_hops}; }

DepoConfig depo2(int max_nodes, int max_hops, Variant variant) {
  DepoConfig config = depo1(max_nodes, max_hops);
  config.letters = variant == Variant::paper ? 4 : 3;
  config.min_name_length = 5;
  config.max_name_length = 7;
  return config;
}

BrevoConfig brevo1(int max_nodes, Variant variant) {
  BrevoConfig config;
  config.max_nodes = max_nodes;
  config.variant = variant;
  return config;
}

BrevoConfig brevo2(int max_nodes, Variant variant) {
  BrevoConfig config = brevo1(max_nodes, variant);
  config.names = true;
  return config;
}

std::unique_ptr<const Task> make_task(const TaskConfig& config) {
  if (const auto* depo = std::get_if<DepoConfig>(&config)) return std::make_unique<Depo>(*depo);
  if (const auto* brevo = std::get_if<BrevoConfig>(&config)) return std::make_unique<Brevo>(*brevo);
  if (const auto* mano = std::get_if<ManoConfig>(&config)) return std::make_unique<Mano>(*mano);
  if (const auto* lano = std::get_if<LanoConfig>(&config)) return std::make_unique<Lano>(*lano);
  return std::make_unique<Copy>(std::get<CopyConfig>(config));
}

std::string print(const Task& task, const std::vector<int32_t>& tokens) {
  std::string text;
  for (const int32_t token : tokens) {
    if (!text.empty()) text += ' ';
    text += task.token_name(token);
  }
  return text;
}

}  // namespace forge::data::tasks
