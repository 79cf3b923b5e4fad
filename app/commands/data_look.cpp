#include <algorithm>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/commands/data.h"
#include "app/output.h"
#include "app/progress_line.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/data/prepared_list.h"
#include "core/data/token_file.h"
#include "core/data/token_statistics.h"
#include "core/data/tokenizer_json.h"

namespace forge::app {
namespace {

using Json = nlohmann::ordered_json;

struct DataLookOptions {
  std::string name;
  bool evaluation = false;
  int64_t documents = 3;
  int64_t from = 0;
  int top = 20;
  bool json = false;
};

std::string fixed(double number, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << number;
  return text.str();
}

/// The token file that a command looks at, with the tokenizer that it is in.
struct Opened {
  data::PreparedFolder folder;
  data::TokenFile file;
  data::Tokenizer tokenizer;
};

Opened open(const DataLookOptions& options) {
  const data::PreparedFolder folder = data::find_prepared(user_cache_dir(), options.name);
  const auto& tokens = options.evaluation ? folder.evaluation : folder.train;
  if (!folder.parts.empty()) {
    std::vector<std::string> names;
    for (const data::PreparedPart& part : folder.parts) names.push_back(part.name);
    throw Error("'" + folder.name + "' is a mixture, which has no tokens of its own",
                {},
                "name one of its parts: " + join(names, ", "));
  }
  if (!tokens) {
    throw Error("'" + folder.name + "' has no whole " +
                    (options.evaluation ? "evaluation" : "train") + ".tokens",
                {},
                folder.unfinished ? "its preparation was broken off: prepare it again" : "",
                ExitCode::failed);
  }
  data::TokenFile file(tokens->path);
  data::Tokenizer tokenizer = data::load_tokenizer(folder.folder / "tokenizer.json");
  if (tokenizer.fingerprint() != file.tokenizer_fingerprint()) {
    throw Error(
        "'" + folder.name + "' is in the tokens of another tokenizer than the one beside it",
        {},
        "prepare it again",
        ExitCode::failed);
  }
  return {folder, std::move(file), std::move(tokenizer)};
}

int show(const DataLookOptions& options) {
  const Opened opened = open(options);
  const int64_t held = opened.file.documents();
  if (options.from >= held) {
    throw Error("'" + opened.folder.name + "' holds " + with_thousands(held) + " documents",
                {},
                "--from counts them from 0 on");
  }
  const bool colour = use_colour(1);
  Json json = Json::array();
  for (int64_t i = options.from; i < std::min(held, options.from + options.documents); ++i) {
    const data::TokenSpan span = opened.file.document(i);
    std::vector<int32_t> ids(static_cast<size_t>(span.count));
    opened.file.read(span.first, span.count, ids.data());
    const std::string text = opened.tokenizer.decode(ids);
    if (options.json) {
      json.push_back({{"document", i}, {"tokens", span.count}, {"text", text}, {"ids", ids}});
      continue;
    }
    const std::string head =
        "document " + with_thousands(i) + ", " + with_thousands(span.count) + " tokens";
    std::cout << styled(head, Style::dim, colour) << "\n" << text << "\n\n";
  }
  if (options.json) print_json(json);
  return 0;
}

Json statistics_json(const Opened& opened, const data::TokenStatistics& statistics) {
  Json top = Json::array();
  for (const data::TokenCount& token : statistics.top) {
    top.push_back({{"id", token.id},
                   {"text", opened.tokenizer.vocabulary().tokens[static_cast<size_t>(token.id)]},
                   {"count", token.count}});
  }
  return {{"name", opened.folder.name},
          {"tokens", statistics.tokens},
          {"documents", statistics.documents},
          {"text_bytes", statistics.text_bytes},
          {"bytes_per_token",
           double(statistics.text_bytes) / double(std::max<int64_t>(1, statistics.tokens))},
          {"document_tokens",
           {{"shortest", statistics.shortest},
            {"mean", statistics.mean_length},
            {"longest", statistics.longest},
            {"quantiles", statistics.quantiles},
            {"classes", statistics.length_classes}}},
          {"unused_entries", statistics.unused_entries},
          {"top", top}};
}

void print_lengths(const data::TokenStatistics& statistics) {
  const std::vector<int64_t>& classes = statistics.length_classes;
  const int64_t most = classes.empty() ? 1 : *std::max_element(classes.begin(), classes.end());
  constexpr int cells = 40;
  std::vector<std::vector<std::string>> lines = {{"tokens", "documents", ""}};
  const auto first = std::find_if(classes.begin(), classes.end(), [](int64_t n) { return n > 0; });
  for (auto i = static_cast<size_t>(first - classes.begin()); i < classes.size(); ++i) {
    std::string bar;
    const int64_t filled = (classes[i] * cells + most - 1) / most;
    for (int64_t cell = 0; cell < filled; ++cell) bar += "█";
    lines.push_back({"< " + with_thousands(int64_t{2} << i), with_thousands(classes[i]), bar});
  }
  std::cout << aligned(lines, {0, 1}) << "\n";
}

int stats(const DataLookOptions& options) {
  const data::PreparedFolder folder = data::find_prepared(user_cache_dir(), options.name);
  if (!folder.parts.empty()) return show_mixture(folder, options.json);
  const Opened opened = open(options);
  data::TokenStatistics statistics;
  {
    ProgressLine line("reading");
    statistics = data::statistics_of(
        opened.file, opened.tokenizer, options.top, [&](double fraction, const std::string& phase) {
          line.show_phase(fraction, phase);
        });
  }
  if (options.json) {
    print_json(statistics_json(opened, statistics));
    return 0;
  }
  const double tokens = double(std::max<int64_t>(1, statistics.tokens));
  std::vector<std::vector<std::string>> lines = {
      {"tokens", with_thousands(statistics.tokens), ""},
      {"documents", with_thousands(statistics.documents), ""},
      {"text", human_bytes(double(statistics.text_bytes)), ""},
      {"bytes per token", fixed(double(statistics.text_bytes) / tokens, 3), ""},
      {"tokens of a document", fixed(statistics.mean_length, 1), "mean"}};
  const std::vector<std::string> names = {"5 %", "25 %", "50 %", "75 %", "95 %"};
  for (size_t i = 0; i < statistics.quantiles.size(); ++i) {
    lines.push_back({"", with_thousands(statistics.quantiles[i]), names[i] + " are no longer"});
  }
  lines.push_back({"unused entries", with_thousands(statistics.unused_entries), ""});
  std::cout << opened.folder.name << "\n\n" << aligned(lines, {1}) << "\n";
  print_lengths(statistics);
  lines = {{"id", "count", "share", "token"}};
  for (const data::TokenCount& token : statistics.top) {
    const std::string& text = opened.tokenizer.vocabulary().tokens[static_cast<size_t>(token.id)];
    lines.push_back({std::to_string(token.id),
                     with_thousands(token.count),
                     fixed(100 * double(token.count) / tokens, 2) + " %",
                     json_text(nlohmann::json(text))});
  }
  std::cout << aligned(lines, {0, 1, 2});
  return 0;
}

Command add_look(const Command& data,
                 Program& program,
                 const std::string& name,
                 const std::string& help,
                 std::shared_ptr<DataLookOptions> options,
                 int (*action)(const DataLookOptions&)) {
  const Command command = data.add_subcommand(name, help);
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options, action] {
    program.action = [options, action](const Context&) { return action(*options); };
  });
  return command;
}

void add_name(const Command& command, DataLookOptions& options) {
  command
      .add_option(
          "name", options.name, "As 'forge data ls' has it, or its beginning; or the folder")
      .required()
      .type_name("NAME");
  command.add_flag("--evaluation", options.evaluation, "The held-out text, not that of training");
}

}  // namespace

void add_data_show(const Command& data, Program& program) {
  auto options = std::make_shared<DataLookOptions>();
  const Command command =
      add_look(data, program, "show", "Documents as text, from their tokens", options, show);
  add_name(command, *options);
  command.add_option("--documents", options->documents, "How many").positive().capture_default();
  command.add_option("--from", options->from, "Number of the first, from 0 on")
      .non_negative()
      .capture_default();
  command.footer(
      "Examples:\n"
      "  forge data show toy_stories\n"
      "  forge data show text-0c6e1f2a --evaluation --from 100 --documents 1 --json");
}

void add_data_stats(const Command& data, Program& program) {
  auto options = std::make_shared<DataLookOptions>();
  const Command command = add_look(data,
                                   program,
                                   "stats",
                                   "Lengths of documents, bytes per token, frequent tokens",
                                   options,
                                   stats);
  add_name(command, *options);
  command.add_option("--top", options->top, "How many of the most frequent tokens")
      .non_negative()
      .capture_default();
  command.footer(
      "Examples:\n"
      "  forge data stats toy_stories\n"
      "  forge data stats text-0c6e1f2a --evaluation --top 5 --json");
}

}  // namespace forge::app
