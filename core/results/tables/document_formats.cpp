#include <algorithm>
#include <map>
#include <string_view>

#include "core/base/display_text.h"
#include "core/base/markdown_text.h"
#include "core/base/text.h"
#include "core/results/tables/provenance.h"
#include "core/results/tables/sheet.h"

namespace forge::tables {
namespace {

std::string markdown_cell(const SheetCell& cell) {
  return cell.bold ? "**" + markdown_text(cell.text) + "**" : markdown_text(cell.text);
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
  for (const std::string& line : lines) text += "- " + markdown_line(line) + "\n";
  return text;
}

std::string setup_table(const std::vector<SetupEntry>& setup) {
  std::string text = "| Setup | |\n| :--- | :--- |\n";
  for (const SetupEntry& entry : setup) {
    text += table_line({markdown_text(entry.name), markdown_text(entry.value)});
  }
  return text;
}

bool same_setup(const std::vector<SetupEntry>& a, const std::vector<SetupEntry>& b) {
  const auto equal = [](const SetupEntry& x, const SetupEntry& y) {
    return x.name == y.name && x.value == y.value;
  };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

/// Which runs the metrics are of: the end of a run's name is the hash of all that it is made from.
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
    titles.push_back(markdown_text(column.title));
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

std::string to_markdown(const Sheet& sheet) {
  std::string text = "## " + markdown_text(sheet.title) + "\n\n";
  if (!sheet.setup.empty()) text += markdown_line(sheet.setup) + "\n\n";
  text += markdown_table(sheet);
  if (!sheet.footnotes.empty()) text += "\n";
  for (size_t i = 0; i < sheet.footnotes.size(); ++i) {
    text += "- [" + std::to_string(i + 1) + "] " + markdown_text(sheet.footnotes[i]) + "\n";
  }
  if (!sheet.points.empty()) text += "\nChosen from:\n\n" + list_of(sheet.points);
  if (!sheet.verdicts.empty()) text += "\nClaims:\n\n" + list_of(sheet.verdicts);
  if (!sheet.commands.empty())
    text += "\nMissing runs are made by\n\n" + code_block(sheet.commands);
  if (!sheet.excluded.empty()) text += "\nLeft out:\n\n" + list_of(sheet.excluded);
  for (const std::string& note : sheet.notes) text += "\n" + markdown_line(note) + "\n";
  return text;
}

std::string to_markdown(const Ablation& ablation) { return to_markdown(make_sheet(ablation)); }

std::string export_markdown(const std::string& title, const std::vector<Ablation>& ablations) {
  const bool one_setup =
      std::all_of(ablations.begin(), ablations.end(), [&](const Ablation& ablation) {
        return same_setup(ablation.setup, ablations.front().setup);
      });
  std::string text = "# " + markdown_text(title) + "\n";
  const auto add_setup = [&](const Ablation& ablation) {
    if (!ablation.setup.empty()) text += "\n" + setup_table(ablation.setup);
  };
  if (one_setup && !ablations.empty()) add_setup(ablations.front());
  for (const Ablation& ablation : ablations) {
    Sheet sheet = make_sheet(ablation);
    sheet.setup.clear();  // the whole of it follows
    text += "\n" + to_markdown(sheet);
    if (!one_setup) add_setup(ablation);
  }
  std::vector<std::string> commands = reproduction_commands(ablations);
  commands.push_back("forge export-markdown");
  return text + runs_section(ablations) + "\n## How to reproduce\n\n" + code_block(commands);
}

namespace {

const std::map<std::string_view, std::string_view>& written_otherwise() {
  static const std::map<std::string_view, std::string_view> table = {
      {"\\", "\\textbackslash{}"},
      {"{", "\\{"},
      {"}", "\\}"},
      {"$", "\\$"},
      {"&", "\\&"},
      {"#", "\\#"},
      {"_", "\\_"},
      {"%", "\\%"},
      {"^", "\\textasciicircum{}"},
      {"~", "\\textasciitilde{}"},
      {"<", "$<$"},
      {">", "$>$"},
      {"|", "$|$"},
      {"\"", "''"},
      {"`", "\\textasciigrave{}"},
      // Behind the \\ of the line before it these two would be its argument.
      {"[", "{[}"},
      {"*", "{*}"},
      {"±", "$\\pm$"},
      {"≈", "$\\approx$"},
      {"−", "$-$"},
      {"×", "$\\times$"},
      {"÷", "$\\div$"},
      {"·", "$\\cdot$"},
      {"≤", "$\\le$"},
      {"≥", "$\\ge$"},
      {"²", "$^2$"},
      {"→", "$\\to$"},
      {"—", "---"},
      {"–", "--"},
      {"…", "\\dots{}"},
  };
  return table;
}

/// Bytes of the UTF-8 character that begins with this one.
size_t character_bytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

std::string latex_cell(const SheetCell& cell) {
  const std::string text = latex_escaped(cell.text);
  return cell.bold ? "\\textbf{" + text + "}" : text;
}

std::string alignment(const std::vector<SheetColumn>& columns) {
  std::string letters;
  for (const SheetColumn& column : columns) {
    letters += column.is_number ? "r" : column.wraps ? "p{0.25\\linewidth}" : "l";
  }
  return letters;
}

std::string line_of(const std::vector<std::string>& cells) {
  return "    " + join(cells, " & ") + " \\\\\n";
}

std::string comments(const std::string& heading, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "% " + heading + ": " + printable(line) + "\n";
  return text;
}

}  // namespace

std::string latex_escaped(const std::string& text) {
  const std::string plain = printable(text);
  std::string result;
  for (size_t i = 0; i < plain.size();) {
    const size_t bytes = character_bytes(static_cast<unsigned char>(plain[i]));
    const std::string_view character = std::string_view(plain).substr(i, bytes);
    const auto found = written_otherwise().find(character);
    result += found == written_otherwise().end() ? character : found->second;
    i += bytes;
  }
  // A number and its percent sign stay on one line.
  for (size_t at = 0; (at = result.find(" \\%", at)) != std::string::npos;) result[at] = '~';
  return result;
}

namespace {

/// The name of a table, which is a file's, within \label{}: what LaTeX would run becomes a dash.
std::string latex_label(const std::string& name) {
  std::string label;
  for (const char c : printable(name))
    label += std::string_view("\\{}%#$&^~").find(c) == std::string_view::npos ? c : '-';
  return label;
}

}  // namespace

std::string to_latex(const Sheet& sheet, const std::string& name) {
  std::string text = comments("claim", sheet.verdicts) + comments("missing", sheet.commands) +
                     comments("note", sheet.notes);
  text += "\\begin{table}\n  \\centering\n  \\caption{" + latex_escaped(sheet.title) +
          "}\n  \\label{tab:" + latex_label(name) + "}\n  \\sbox0{\\begin{tabular}{" +
          alignment(sheet.columns) + "}\n    \\toprule\n";
  std::vector<std::string> titles;
  for (const SheetColumn& column : sheet.columns) titles.push_back(latex_escaped(column.title));
  text += line_of(titles) + "    \\midrule\n";
  for (const auto& row : sheet.rows) {
    std::vector<std::string> cells;
    for (const SheetCell& cell : row) cells.push_back(latex_cell(cell));
    text += line_of(cells);
  }
  // Shrunk to the width of the text where it is wider.
  text +=
      "    \\bottomrule\n  \\end{tabular}}%\n"
      "  \\ifdim\\wd0>\\linewidth\\resizebox{\\linewidth}{!}{\\usebox0}\\else\\usebox0\\fi\n";
  std::vector<std::string> notes;
  if (!sheet.setup.empty()) notes.push_back(latex_escaped(sheet.setup));
  for (size_t i = 0; i < sheet.footnotes.size(); ++i)
    notes.push_back("{[}" + std::to_string(i + 1) + "] " + latex_escaped(sheet.footnotes[i]));
  if (!sheet.excluded.empty())
    notes.push_back("Left out: " + latex_escaped(join(sheet.excluded, "; ")));
  if (!notes.empty()) {
    text += "  \\par\\smallskip\\parbox{\\linewidth}{\\footnotesize " + join(notes, "\\\\\n    ") +
            "}\n";
  }
  return text + "\\end{table}\n";
}

std::string to_latex(const Ablation& ablation) {
  return to_latex(make_sheet(ablation), ablation.table.name);
}

std::string latex_document_part(const std::vector<std::string>& tables) {
  return "% Written by 'forge export --format latex', for \\input in a document with\n"
         "% \\usepackage{booktabs} and \\usepackage{graphicx}.\n\n" +
         join(tables, "\n");
}

}  // namespace forge::tables
