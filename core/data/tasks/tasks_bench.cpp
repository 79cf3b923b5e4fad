// forge-bench-tasks: tokens a second that one core generates of each task, the median of five
// windows of a quarter of a second. One JSON line each. Argument: the folder of Lano's grammars.

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/data/tasks/capo.h"
#include "core/data/tasks/task.h"

namespace forge::data::tasks {
namespace {

constexpr int windows = 5;
constexpr double window_seconds = 0.25;
constexpr double bytes_a_token = 4;  // of English under a byte-level BPE

/// `tokens_of(i)` generates instance i and says how many tokens it has.
template <class TokensOf>
void bench(const std::string& name, double at_least, const TokensOf& tokens_of) {
  std::vector<double> speeds;
  uint64_t index = 0;
  for (int i = 0; i < windows; ++i) {
    const double began = steady_seconds();
    double tokens = 0;
    double seconds = 0;
    while (seconds < window_seconds) {
      for (int batch = 0; batch < 20; ++batch) tokens += tokens_of(index++);
      seconds = steady_seconds() - began;
    }
    speeds.push_back(tokens / seconds);
  }
  std::sort(speeds.begin(), speeds.end());
  std::cout << json_text(nlohmann::json{{"name", "tasks." + name},
                                        {"value", speeds[windows / 2] / 1e6},
                                        {"unit", "M tokens/s"},
                                        {"at_least", at_least}})
            << std::endl;
}

void bench_task(const std::string& name, double at_least, const TaskConfig& config) {
  const std::unique_ptr<const Task> task = make_task(config);
  Instance instance;
  bench(name, at_least, [&](uint64_t index) {
    task->generate(1, Split::training, index, instance);
    return static_cast<double>(instance.tokens.size());
  });
}

void bench_all(const std::filesystem::path& grammars) {
  bench_task("depo1", 5, depo1(375, 8));
  bench_task("depo2", 5, depo2(125, 16));
  bench_task("brevo1", 5, brevo1(110));
  bench_task("brevo2", 5, brevo2(50));
  bench_task("mano", 5, ManoConfig{});
  bench_task("copy", 5, CopyConfig{});
  for (const std::string name : {"cfg3f", "cfg3j", "cfg3k"}) {
    bench_task("lano_" + name, 2, LanoConfig{Grammar::read(grammars / (name + ".json"))});
  }
  const Capo capo({}, 1);
  bench("capo", 2, [&](uint64_t index) {
    return static_cast<double>(capo.biography(Split::training, index).text.size()) / bytes_a_token;
  });
}

}  // namespace
}  // namespace forge::data::tasks

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: forge-bench-tasks FOLDER_OF_GRAMMARS\n";
    return 2;
  }
  forge::data::tasks::bench_all(arguments[1]);
}
