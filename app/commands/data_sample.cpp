#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/data.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/config/resolve.h"
#include "core/data/tasks/sample.h"

namespace forge::app {
namespace {

struct DataSampleOptions {
  std::string config;
  std::vector<std::string> overrides;
  int count = 3;
  bool evaluation = false;
  bool json = false;
};

config::DataConfig data_of(const Context& context, const DataSampleOptions& options) {
  const ChosenConfig config = context.config(options.config);
  config::ResolveOptions resolve;
  resolve.overrides = options.overrides;
  resolve.surroundings = context.surroundings();
  resolve.variables = config.variables;
  const config::ResolvedConfig resolved =
      config::resolve(config.project, config.config.name, resolve);
  if (resolved.trains) return resolved.experiment.data;
  throw Error("'" + config.config.name + "' is a model for other configs to use: it has no data",
              {},
              "name a training config; 'forge ls' lists them");
}

/// Tokens that carry loss stand out: bold on a terminal, in brackets elsewhere.
void print(const data::tasks::Sample& sample, bool colour) {
  if (sample.tokens.empty()) {
    std::cout << sample.text << "\n";
    return;
  }
  for (size_t i = 0; i < sample.tokens.size(); ++i) {
    const std::string& token = sample.tokens[i];
    if (i > 0) std::cout << ' ';
    if (!sample.scored[i]) {
      std::cout << token;
    } else if (colour) {
      std::cout << styled(token, Style::bold, true);
    } else {
      std::cout << '[' << token << ']';
    }
  }
  std::cout << "\n";
}

nlohmann::ordered_json to_json(const data::tasks::Sample& sample) {
  nlohmann::ordered_json json = {{"text", sample.text}};
  if (sample.tokens.empty()) return json;
  json["ids"] = sample.ids;
  json["tokens"] = sample.tokens;
  json["scored"] = sample.scored;
  return json;
}

int sample(const Context& context, const DataSampleOptions& options) {
  const data::Split split = options.evaluation ? data::Split::evaluation : data::Split::training;
  const auto samples = data::tasks::samples_of(data_of(context, options), split, options.count);
  if (options.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const data::tasks::Sample& one : samples) json.push_back(to_json(one));
    print_json(json);
    return 0;
  }
  bool first = true;
  for (const data::tasks::Sample& one : samples) {
    if (!first) std::cout << "\n";
    first = false;
    print(one, use_colour(1));
  }
  return 0;
}

}  // namespace

void add_data_sample(const Command& data, Program& program) {
  auto options = std::make_shared<DataSampleOptions>();
  const Command command =
      data.add_subcommand("sample", "Texts of a config's synthetic task, as a model reads them");
  command.footer(
      "Examples:\n"
      "  forge data sample depo1/rope\n"
      "  forge data sample mano/rope --set data.task.variant=code -n 5\n"
      "  forge data sample brevo2/rope --evaluation --json\n"
      "\n"
      "What carries loss is bold, or stands in brackets where the output is no terminal.");
  add_config_options(command, program, options->config);
  add_set_option(command, options->overrides);
  command.add_option("-n,--count", options->count, "How many")
      .between(1, 1000000)
      .capture_default();
  command.add_flag("--evaluation", options->evaluation, "Of those that evaluations use");
  command.add_flag("--json", options->json, "As JSON, with ids and what is scored");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return sample(c, *options); };
  });
}

}  // namespace forge::app
