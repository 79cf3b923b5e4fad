#include "core/report/markdown.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/report/commands.h"
#include "core/report/display_text.h"

namespace forge::report {
namespace {

/// Text that Markdown shows as it stands.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : printable(text)) {
    if (std::string_view("\\|<>*`").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string markdown_cell(const SheetCell& cell) {
  return cell.bold ? "**" + escaped(cell.text) + "**" : escaped(cell.text);
}

std::string table_line(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

std::string code_block(const std::vector<std::string>& lines) {
  std::string text = "```sh\n";
  for (const std::string& line : lines) text += printable(line) + "\n";
  return text + "```\n";
}

std::string list_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "- " + escaped(line) + "\n";
  return text;
}

std::string setup_table(const std::vector<SetupEntry>& setup) {
  std::string text = "| Setup | |\n| :--- | :--- |\n";
  for (const SetupEntry& entry : setup) {
    text += table_line({escaped(entry.name), escaped(entry.value)});
  }
  return text;
}

bool same_setup(const std::vector<SetupEntry>& a, const std::vector<SetupEntry>& b) {
  const auto equal = [](const SetupEntry& x, const SetupEntry& y) {
    return x.name == y.name && x.value == y.value;
  };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

/// Which runs the figures are of: the end of a run's name is the hash of all that it is made from.
std::string runs_section(const std::vector<Ablation>& ablations) {
  Sheet sheet;
  for (const char* title : {"Config", "Seed", "Run", "Code", "Device"})
    sheet.columns.push_back({title, title == std::string("Seed"), false});
  for (const store::RunSummary& run : shown_runs(ablations)) {
    const std::string code = run.backend + " " + run.backend_version + ", numerics " +
                             std::to_string(run.numerics_version) +
                             (run.revision.empty() ? "" : ", " + run.revision);
    const std::string device = run.device_name.empty() ? run.device_type : run.device_name;
    sheet.rows.push_back(
        {{run.config, {}}, {std::to_string(run.seed), {}}, {run.id, {}}, {code, {}}, {device, {}}});
  }
  if (sheet.rows.empty()) return "";
  return "\n## Runs\n\nThe end of a run's name is the hash of all that it was made from.\n\n" +
         markdown_table(sheet);
}

}  // namespace

std::string markdown_table(const Sheet& sheet) {
  std::vector<std::string> titles;
  std::vector<std::string> rules;
  for (const SheetColumn& column : sheet.columns) {
    titles.push_back(escaped(column.title));
    rules.push_back(column.is_number ? "---:" : ":---");
  }
  std::string text = table_line(titles) + table_line(rules);
  for (const auto& row : sheet.rows) {
    std::vector<std::string> cells;
    for (const SheetCell& cell : row) cells.push_back(markdown_cell(cell));
    text += table_line(cells);
  }
  return text;
}

std::string to_markdown(const Ablation& ablation) {
  const Sheet sheet = make_sheet(ablation);
  std::string text = "## " + escaped(sheet.title) + "\n\n" + markdown_table(sheet);
  if (!sheet.footnotes.empty()) text += "\n";
  for (size_t i = 0; i < sheet.footnotes.size(); ++i) {
    text += "- [" + std::to_string(i + 1) + "] " + escaped(sheet.footnotes[i]) + "\n";
  }
  if (!sheet.points.empty()) text += "\nChosen from:\n\n" + list_of(sheet.points);
  if (!sheet.verdicts.empty()) text += "\nClaims:\n\n" + list_of(sheet.verdicts);
  if (!sheet.commands.empty())
    text += "\nMissing runs are made by\n\n" + code_block(sheet.commands);
  if (!sheet.left_out.empty()) text += "\nLeft out:\n\n" + list_of(sheet.left_out);
  for (const std::string& source : sheet.sources) text += "\n" + escaped(source) + "\n";
  return text;
}

std::string export_markdown(const std::string& title, const std::vector<Ablation>& ablations) {
  const bool one_setup =
      std::all_of(ablations.begin(), ablations.end(), [&](const Ablation& ablation) {
        return same_setup(ablation.setup, ablations.front().setup);
      });
  std::string text = "# " + escaped(title) + "\n";
  const auto add_setup = [&](const Ablation& ablation) {
    if (!ablation.setup.empty()) text += "\n" + setup_table(ablation.setup);
  };
  if (one_setup && !ablations.empty()) add_setup(ablations.front());
  for (const Ablation& ablation : ablations) {
    text += "\n" + to_markdown(ablation);
    if (!one_setup) add_setup(ablation);
  }
  std::vector<std::string> commands = reproduction_commands(ablations);
  commands.push_back("forge export-markdown");
  return text + runs_section(ablations) + "\n## How to reproduce\n\n" + code_block(commands);
}

}  // namespace forge::report
