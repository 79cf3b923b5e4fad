#include <iostream>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/json_text.h"
#include "core/run/run_model.h"
#include "core/run/why.h"

namespace forge::app {
namespace {

struct WhyOptions {
  std::string left, right;
  bool json = false;
};

int why(const Context& context, const WhyOptions& options) {
  const std::filesystem::path runs_dir = context.runs_dir();
  const run::RunRecord left = run::named_run(runs_dir, options.left).record();
  const run::RunRecord right = run::named_run(runs_dir, options.right).record();
  const auto found = run::differences(left.identity, right.identity);
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const run::IdentityDifference& difference : found) {
      list.push_back(
          {{"what", difference.what},
           {"left", try_parse_json(difference.left.empty() ? "null" : difference.left)},
           {"right", try_parse_json(difference.right.empty() ? "null" : difference.right)},
           {"meaning", difference.meaning}});
    }
    const nlohmann::json whole = {{"left", left.id}, {"right", right.id}, {"differences", list}};
    print_json(whole);
  } else if (found.empty()) {
    std::cout << left.id << " and " << right.id
              << " are the same run, made twice: their losses should be the same\n";
  } else {
    std::vector<std::vector<std::string>> lines = {{"What differs", left.id, right.id, ""}};
    for (const run::IdentityDifference& difference : found) {
      const auto shown = [](const std::string& value) { return value.empty() ? "—" : value; };
      lines.push_back(
          {difference.what, shown(difference.left), shown(difference.right), difference.meaning});
    }
    std::cout << aligned(lines, {});
  }
  return found.empty() ? 0 : 1;
}

}  // namespace

void add_why(const Command& app, Program& program) {
  auto options = std::make_shared<WhyOptions>();
  const Command command = app.add_subcommand("why", "Say in what two runs differ that counts");
  command.footer(
      "Two runs are the same where nothing differs that may change a loss; then the second is\n"
      "'cached'. Names, how often is logged and where files lie do not count. Exit code 0 where\n"
      "nothing differs, 1 where something does.\n"
      "\n"
      "Examples:\n"
      "  forge why train_llama-deb27d train_llama-2c827a\n"
      "  forge why train_llama-deb27d train_llama-2c827a --json");
  command.add_option("left", options->left, "A run, or the beginning of its id")
      .required()
      .type_name("RUN");
  command.add_option("right", options->right, "Another").required().type_name("RUN");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return why(c, *options); };
  });
}

}  // namespace forge::app
