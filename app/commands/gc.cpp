#include <unistd.h>

#include <iostream>
#include <map>

#include "app/commands.h"
#include "app/output.h"
#include "app/progress_line.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/upkeep/garbage.h"

namespace forge::app {
namespace {

struct GcOptions {
  double days = 7;
  bool cache = false;
  bool verify = false;
  bool yes = false;
  bool verbose = false;
  bool json = false;
};

struct Sum {
  int64_t count = 0, bytes = 0;
};

Sum sum_of(const std::vector<upkeep::Garbage>& garbage) {
  Sum sum;
  for (const upkeep::Garbage& item : garbage) {
    ++sum.count;
    sum.bytes += item.bytes;
  }
  return sum;
}

std::string words_for(upkeep::Waste waste) {
  switch (waste) {
    case upkeep::Waste::removed_run: return "removed runs";
    case upkeep::Waste::surplus_checkpoint: return "checkpoints beyond what their runs keep";
    case upkeep::Waste::damaged_checkpoint: return "damaged checkpoints";
    case upkeep::Waste::leftover: return "leftovers of broken work";
    case upkeep::Waste::prepared_data: return "prepared data that no run here needs";
  }
  return "";
}

void print(const std::vector<upkeep::Garbage>& garbage, bool verbose) {
  std::map<upkeep::Waste, Sum> sums;
  for (const upkeep::Garbage& item : garbage) {
    ++sums[item.waste].count;
    sums[item.waste].bytes += item.bytes;
  }
  std::vector<std::vector<std::string>> lines = {{"What", "Count", "Size"}};
  for (const auto& [waste, sum] : sums) {
    lines.push_back({words_for(waste), std::to_string(sum.count), human_bytes(double(sum.bytes))});
  }
  std::cout << aligned(lines, {1, 2});
  if (!verbose) return;
  std::vector<std::vector<std::string>> items;
  for (const upkeep::Garbage& item : garbage)
    items.push_back({human_bytes(double(item.bytes)), shown_path(item.path), item.reason});
  std::cout << "\n" << aligned(items, {0});
}

bool agreed(const std::string& bytes) {
  std::cerr << "free " << bytes << "? This cannot be undone. [y/N] ";
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

std::vector<upkeep::Garbage> find(const std::filesystem::path& runs_dir, const GcOptions& options) {
  upkeep::GarbageOptions search;
  search.days = options.days;
  search.read_all = options.verify;
  search.now = unix_time();
  if (options.cache) search.cache_dir = user_cache_dir();
  if (!is_terminal(STDERR_FILENO)) return upkeep::find_garbage(runs_dir, search);
  ProgressLine line("looking through runs");
  return upkeep::find_garbage(
      runs_dir, search, [&](double fraction) { line.show_phase(fraction, ""); });
}

int collect(const Context& context, const GcOptions& options) {
  const std::filesystem::path runs_dir = context.runs_dir();
  const std::vector<upkeep::Garbage> garbage = find(runs_dir, options);
  const Sum sum = sum_of(garbage);
  if (!options.json) {
    if (garbage.empty()) {
      std::cout << "nothing to free in " << shown_path(runs_dir)
                << (options.cache ? " and the cache\n" : "; --cache looks at prepared data, too\n");
      return 0;
    }
    print(garbage, options.verbose);
  }
  const std::string bytes = human_bytes(double(sum.bytes));
  const bool can_ask = !options.json && is_terminal(STDIN_FILENO) && is_terminal(STDERR_FILENO);
  upkeep::Freed freed;
  const bool frees = !garbage.empty() && (options.yes || (can_ask && agreed(bytes)));
  if (frees) freed = upkeep::free_garbage(runs_dir, garbage);
  for (const std::string& kept : freed.kept) std::cerr << "warning: kept " << kept << "\n";
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const upkeep::Garbage& item : garbage) list.push_back(to_json(item));
    print_json(nlohmann::json{{"garbage", list},
                              {"bytes", sum.bytes},
                              {"freed", freed.count},
                              {"freed_bytes", freed.bytes},
                              {"kept", freed.kept}});
  } else if (frees) {
    std::cout << "freed " << human_bytes(double(freed.bytes)) << "\n";
  } else {
    std::cout << "nothing was freed; --yes frees " << bytes << "\n";
  }
  return freed.kept.empty() ? 0 : 1;
}

}  // namespace

void add_gc(const Command& app, Program& program) {
  auto options = std::make_shared<GcOptions>();
  const Command command =
      app.add_subcommand("gc", "Say what disk space could be freed, and free it");
  command.footer(
      "Looks for removed runs, checkpoints that completed runs were asked not to keep, damaged\n"
      "checkpoints and what broken-off work left behind. Runs that run or wait in the queue are "
      "left\n"
      "alone. Asks before it frees anything; where nobody can answer, --yes must say so.\n"
      "\n"
      "Examples:\n"
      "  forge gc\n"
      "  forge gc --verbose --cache\n"
      "  forge gc --older-than 0 --yes       removed runs at once");
  command
      .add_option("--older-than",
                  options->days,
                  "Days that removed runs, and prepared data since its last change, are kept")
      .non_negative()
      .type_name("DAYS")
      .capture_default();
  command.add_flag("--cache", options->cache, "Prepared data of the user's cache, too");
  command.add_flag("--verify",
                   options->verify,
                   "Read every byte of checkpoints for damage, not only their sizes");
  command.add_flag("-v,--verbose", options->verbose, "List each folder");
  command.add_flag("--yes", options->yes, "Free it without a question");
  command.add_flag("--json", options->json, "As JSON; frees nothing without --yes");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return collect(c, *options); };
  });
}

}  // namespace forge::app
