#include "core/config/task_keys.h"

#include <map>

namespace forge::config {
namespace {

constexpr SizeKey max_nodes{"max_nodes", &TaskConfig::max_nodes};
constexpr SizeKey max_hops{"max_hops", &TaskConfig::max_hops};
constexpr SizeKey max_operators{"max_operators", &TaskConfig::max_operators};
constexpr SizeKey length{"length", &TaskConfig::length};
constexpr SizeKey scored_tokens{"scored_tokens", &TaskConfig::scored_tokens};
constexpr SizeKey people{"people", &TaskConfig::people};

const std::map<std::string, std::vector<TaskSize>>& all_sizes() {
  static const std::map<std::string, std::vector<TaskSize>> sizes = {
      {"depo1", {{max_nodes, 3, "375"}, {max_hops, 1, "8"}}},
      {"depo2", {{max_nodes, 3, "125"}, {max_hops, 1, "16"}}},
      {"brevo1", {{max_nodes, 3, "110"}}},
      {"brevo2", {{max_nodes, 3, "50"}}},
      {"mano", {{max_operators, 1, "16"}}},
      {"lano", {}},
      {"capo", {{people, 1, "50000"}}},
      {"copy", {{length, 1, "500"}, {scored_tokens, 0, ""}}}};
  return sizes;
}

constexpr int depo1_letters = 50;
constexpr int depo2_letters = 4;
constexpr int depo2_code_letters = 3;
constexpr int brevo2_letters = 4;

int depo_vocab_size(int letters, int hops) { return 2 * letters + hops + 2; }

}  // namespace

const std::vector<SizeKey>& size_keys() {
  static const std::vector<SizeKey> keys = {
      max_nodes, max_hops, max_operators, length, scored_tokens, people};
  return keys;
}

const std::vector<std::string>& task_names() {
  static const std::vector<std::string> names = {
      "depo1", "depo2", "brevo1", "brevo2", "mano", "lano", "capo", "copy"};
  return names;
}

std::vector<TaskSize> sizes_of(const std::string& task) {
  const auto found = all_sizes().find(task);
  return found == all_sizes().end() ? std::vector<TaskSize>() : found->second;
}

int task_vocab_size(const TaskConfig& task) {
  const bool code = task.variant == TaskVariant::code;
  if (task.name == "depo1") return depo_vocab_size(depo1_letters, task.max_hops);
  if (task.name == "depo2") {
    return depo_vocab_size(code ? depo2_code_letters : depo2_letters, task.max_hops);
  }
  if (task.name == "brevo1") return task.max_nodes + 4;
  if (task.name == "brevo2") return 2 * brevo2_letters + 4;
  if (task.name == "mano") return code ? 4 * task.max_operators + 31 : task.max_operators + 28;
  if (task.name == "copy") return task.length + 2;
  return 4;  // lano
}

}  // namespace forge::config
