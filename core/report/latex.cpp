#include "core/report/latex.h"

#include <map>
#include <string_view>

#include "core/base/text.h"
#include "core/report/display_text.h"

namespace forge::report {
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

std::string to_latex(const Sheet& sheet, const std::string& name, const std::string& setup) {
  std::string text = comments("claim", sheet.verdicts) + comments("missing", sheet.commands) +
                     comments("left out", sheet.left_out) + comments("source", sheet.sources);
  text += "\\begin{table}\n  \\centering\n  \\caption{" + latex_escaped(sheet.title) +
          "}\n  \\label{tab:" + name + "}\n  \\sbox0{\\begin{tabular}{" + alignment(sheet.columns) +
          "}\n    \\toprule\n";
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
  if (!setup.empty()) notes.push_back(latex_escaped(setup));
  for (size_t i = 0; i < sheet.footnotes.size(); ++i)
    notes.push_back("{[}" + std::to_string(i + 1) + "] " + latex_escaped(sheet.footnotes[i]));
  if (!notes.empty()) {
    text += "  \\par\\smallskip\\parbox{\\linewidth}{\\footnotesize " + join(notes, "\\\\\n    ") +
            "}\n";
  }
  return text + "\\end{table}\n";
}

std::string to_latex(const Ablation& ablation) {
  std::vector<std::string> setup;
  for (const SetupEntry& entry : ablation.setup) {
    if (!entry.brief.empty()) setup.push_back(entry.brief);
  }
  return to_latex(make_sheet(ablation), ablation.table.name, join(setup, " \u00b7 "));
}

std::string latex_document_part(const std::vector<std::string>& tables) {
  return "% Written by 'forge export --format latex', for \\input in a document with\n"
         "% \\usepackage{booktabs} and \\usepackage{graphicx}.\n\n" +
         join(tables, "\n");
}

}  // namespace forge::report
