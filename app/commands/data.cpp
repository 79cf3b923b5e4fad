#include <algorithm>
#include <ctime>
#include <iostream>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/rows/token_cache.h"
#include "core/data/rows/token_file.h"
#include "core/data/rows/token_statistics.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/results/metrics.h"

namespace forge::app {
namespace {

using Json = nlohmann::ordered_json;

std::string percent_text(double share) { return results::fixed_text(100 * share, 2) + " %"; }

Json tokens_json(const std::optional<data::PreparedTokens>& tokens) {
  if (!tokens) return nullptr;
  return {{"path", tokens->path.string()},
          {"tokens", tokens->tokens},
          {"documents", tokens->documents}};
}

Json parts_json(const data::PreparedFolder& folder) {
  return json_list(folder.parts, [](const data::PreparedPart& part) -> Json {
    return {{"source", part.source},
            {"weight", part.weight},
            {"name", part.name},
            {"train", tokens_json(part.train)},
            {"evaluation", tokens_json(part.evaluation)}};
  });
}

Json folder_json(const data::PreparedFolder& folder) {
  return {{"name", folder.name},
          {"folder", folder.folder.string()},
          {"source", folder.source},
          {"path", folder.text_path},
          {"train", tokens_json(folder.train)},
          {"evaluation", tokens_json(folder.evaluation)},
          {"bytes", folder.bytes},
          {"modified", folder.modified},
          {"unfinished", folder.unfinished},
          {"parts", parts_json(folder)}};
}

/// A number of the training tokens, of all parts of a mixture together.
std::string training_count(const data::PreparedFolder& folder,
                           int64_t data::PreparedTokens::*member) {
  if (folder.train) return with_thousands((*folder.train).*member);
  int64_t sum = 0;
  for (const data::PreparedPart& part : folder.parts) sum += part.train ? (*part.train).*member : 0;
  return sum > 0 ? with_thousands(sum) : "-";
}

std::string source_text(const data::PreparedFolder& folder) {
  if (!folder.parts.empty()) {
    const auto parts = texts_of(folder.parts, [](const data::PreparedPart& part) {
      return part.source + " " + shortest(part.weight);
    });
    return join(parts, ", ");
  }
  if (folder.unfinished) return "unfinished";
  if (!folder.train) return "empty: preparation failed";
  return folder.text_path.empty() ? folder.source : shown_path(folder.text_path);
}

int list_data(const Context&, bool as_json) {
  const auto prepared = data::list_prepared(user_cache_dir());
  const auto now = static_cast<double>(std::time(nullptr));
  if (as_json) return print_json(json_list(prepared, folder_json));
  if (prepared.empty()) {
    std::cout << "no prepared data in " << shown_path(user_cache_dir() / "data") << "\n";
    return 0;
  }
  std::vector<std::vector<std::string>> lines = {
      {"name", "tokens", "documents", "size", "age", "text"}};
  double bytes = 0;
  for (const data::PreparedFolder& folder : prepared) {
    lines.push_back({folder.name,
                     training_count(folder, &data::PreparedTokens::tokens),
                     training_count(folder, &data::PreparedTokens::documents),
                     human_bytes(static_cast<double>(folder.bytes)),
                     human_duration(std::max(0.0, now - static_cast<double>(folder.modified))),
                     source_text(folder)});
    bytes += static_cast<double>(folder.bytes);
  }
  std::cout << aligned(lines, {1, 2, 3, 4}) << human_bytes(bytes) << " in "
            << shown_path(user_cache_dir() / "data") << "\n";
  return 0;
}

/// The parts of a mixture; each has statistics of its own.
int show_mixture(const data::PreparedFolder& folder, bool json) {
  if (json) return print_json(Json{{"name", folder.name}, {"parts", parts_json(folder)}});
  double sum = 0;
  for (const data::PreparedPart& part : folder.parts) sum += part.weight;
  std::vector<std::vector<std::string>> lines = {
      {"source", "share of rows", "tokens", "documents", "name"}};
  for (const data::PreparedPart& part : folder.parts) {
    lines.push_back({part.source,
                     percent_text(part.weight / sum),
                     part.train ? with_thousands(part.train->tokens) : "-",
                     part.train ? with_thousands(part.train->documents) : "-",
                     part.name});
  }
  std::cout << tables::printable(folder.name) << "\n\n" << aligned(lines, {1, 2, 3});
  return 0;
}

struct DataShowOptions {
  std::string name;
  bool evaluation = false;
  int64_t documents = 3;
  int64_t from = 0;
  int top = 20;
  bool json = false;
};

/// A token file with its tokenizer.
struct OpenTokens {
  data::PreparedFolder folder;
  data::TokenFile file;
  data::Tokenizer tokenizer;
};

OpenTokens open_tokens(const DataShowOptions& options) {
  const data::PreparedFolder folder = data::find_prepared(user_cache_dir(), options.name);
  const auto& tokens = options.evaluation ? folder.evaluation : folder.train;
  if (!folder.parts.empty()) {
    throw Error(
        "'" + folder.name + "' is a mixture: its tokens are in its parts",
        "name one of its parts: " + join(texts_of(folder.parts, &data::PreparedPart::name), ", "));
  }
  if (!tokens) {
    throw Error("'" + folder.name + "' has no complete " +
                    (options.evaluation ? "evaluation" : "train") + ".tokens",
                folder.unfinished ? "its preparation was interrupted: prepare it again" : "",
                ExitCode::failed);
  }
  data::TokenFile file(tokens->path);
  data::Tokenizer tokenizer = data::load_tokenizer(folder.folder / "tokenizer.json");
  if (tokenizer.fingerprint() != file.tokenizer_fingerprint()) {
    throw Error(
        "'" + folder.name + "' was tokenized with another tokenizer than its tokenizer.json",
        "prepare it again",
        ExitCode::failed);
  }
  return {folder, std::move(file), std::move(tokenizer)};
}

int show_documents(const Context&, const DataShowOptions& options) {
  const OpenTokens opened = open_tokens(options);
  const int64_t held = opened.file.documents();
  if (options.from >= held) {
    throw Error("'" + opened.folder.name + "' holds " + with_thousands(held) + " documents",
                "--from counts from 0");
  }
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
    std::cout << styled(head, Style::dim) << "\n" << tables::printable_lines(text) << "\n\n";
  }
  if (options.json) print_json(json);
  return 0;
}

Json statistics_json(const OpenTokens& opened, const data::TokenStatistics& statistics) {
  const auto& texts = opened.tokenizer.vocabulary().tokens;
  const Json top = json_list(statistics.top, [&](const data::TokenCount& token) -> Json {
    return {{"id", token.id}, {"text", texts[size_t(token.id)]}, {"count", token.count}};
  });
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

int show_statistics(const Context&, const DataShowOptions& options) {
  const data::PreparedFolder folder = data::find_prepared(user_cache_dir(), options.name);
  if (!folder.parts.empty()) return show_mixture(folder, options.json);
  const OpenTokens opened = open_tokens(options);
  const data::TokenStatistics statistics = data::statistics_of(
      opened.file, opened.tokenizer, options.top, ProgressLine("reading").phase_reporter());
  if (options.json) return print_json(statistics_json(opened, statistics));
  const double tokens = double(std::max<int64_t>(1, statistics.tokens));
  std::vector<std::vector<std::string>> lines = {
      {"tokens", with_thousands(statistics.tokens), ""},
      {"documents", with_thousands(statistics.documents), ""},
      {"text", human_bytes(double(statistics.text_bytes)), ""},
      {"bytes per token", results::fixed_text(double(statistics.text_bytes) / tokens, 3), ""},
      {"tokens of a document", results::fixed_text(statistics.mean_length, 1), "mean"}};
  const std::vector<std::string> names = {"5 %", "25 %", "50 %", "75 %", "95 %"};
  for (size_t i = 0; i < statistics.quantiles.size(); ++i) {
    lines.push_back(
        {"", with_thousands(statistics.quantiles[i]), names[i] + " are at most this long"});
  }
  lines.push_back({"unused entries", with_thousands(statistics.unused_entries), ""});
  std::cout << tables::printable(opened.folder.name) << "\n\n" << aligned(lines, {1}) << "\n";
  print_lengths(statistics);
  lines = {{"id", "count", "share", "token"}};
  for (const data::TokenCount& token : statistics.top) {
    const std::string& text = opened.tokenizer.vocabulary().tokens[static_cast<size_t>(token.id)];
    lines.push_back({std::to_string(token.id),
                     with_thousands(token.count),
                     results::fixed_text(100 * double(token.count) / tokens, 2) + " %",
                     json_text(nlohmann::json(text))});
  }
  std::cout << aligned(lines, {0, 1, 2});
  return 0;
}

void add_tokens_arguments(const Command& command, DataShowOptions& options) {
  command
      .add_option("NAME",
                  options.name,
                  "Prepared data: a name of 'forge data ls' or a prefix of it, or a folder")
      .required();
  command.add_flag("--evaluation", options.evaluation, "Use the evaluation text");
  add_json_option(command, options.json);
}

void add_data_ls(const Command& data) {
  const auto [command, json] =
      data.add_command("ls", "List prepared data, newest first", list_data);
  command.examples("forge data ls\nforge data ls --json");
  add_json_option(command, json);
}

void add_data_show(const Command& data) {
  const auto [command, options] =
      data.add_command("show", "Print documents, decoded from their tokens", show_documents);
  command.examples(
      "forge data show toy_stories\n"
      "forge data show text-0c6e1f2a --evaluation --from 100 --documents 1 --json");
  add_tokens_arguments(command, options);
  command.add_option("--documents", options.documents, "Number of documents")
      .at_least(1)
      .show_default();
  command.add_option("--from", options.from, "Index of the first document")
      .at_least(0)
      .show_default();
}

void add_data_stats(const Command& data) {
  const auto [command, options] =
      data.add_command("stats",
                       "Print document lengths, bytes per token and the most frequent tokens",
                       show_statistics);
  command.examples(
      "forge data stats toy_stories\n"
      "forge data stats text-0c6e1f2a --evaluation --top 5 --json");
  add_tokens_arguments(command, options);
  command.add_option("--top", options.top, "Number of most frequent tokens")
      .at_least(0)
      .show_default();
}

}  // namespace

void add_data(const Command& app) {
  const Command data = app.add_command("data", "Prepare and inspect data").requires_subcommand();
  data.examples(
          "forge data get tinystories                download a public dataset\n"
          "forge data prepare train_llama            tokenize what a run would train on\n"
          "forge data prepare --path books/ --documents block --vocab-size 8000\n"
          "forge data sample depo1/rope              texts of a synthetic task\n"
          "forge data ls                             prepared data and its size\n"
          "forge data show toy_stories --documents 2\n"
          "forge data stats toy_stories --json")
      .see_also("docs/DATA.md, docs/TASKS.md");
  add_data_get(data);
  add_data_prepare(data);
  add_data_sample(data);
  add_data_ls(data);
  add_data_show(data);
  add_data_stats(data);
}

}  // namespace forge::app
