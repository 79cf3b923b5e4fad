#include "core/report/latex.h"

#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::report {
namespace {

using tests::contains;

TEST_CASE("LaTeX shows every character as it stands", "[latex]") {
  REQUIRE(latex_escaped("a_b & 5 % of $3 #1 {x} ^2 ~y \\z") ==
          "a\\_b \\& 5~\\% of \\$3 \\#1 \\{x\\} \\textasciicircum{}2 \\textasciitilde{}y "
          "\\textbackslash{}z");
  REQUIRE(latex_escaped("<|>\"`'") == "$<$$|$$>$''\\textasciigrave{}'");
  REQUIRE(latex_escaped("1.30 ± 0.01 ≈ −2 × 3 — 4…") ==
          "1.30 $\\pm$ 0.01 $\\approx$ $-$2 $\\times$ 3 --- 4\\dots{}");
  REQUIRE(latex_escaped("Größe µ") == "Größe µ");
  REQUIRE(latex_escaped("a\nb\x1b[31m\xff") == "a b{[}31m\xef\xbf\xbd");
  REQUIRE(latex_escaped("").empty());
}

TEST_CASE("nothing at the start of a row is an argument of the row before", "[latex]") {
  REQUIRE(latex_escaped("[1] *x*") == "{[}1] {*}x{*}");
}

TEST_CASE("a table in LaTeX", "[latex]") {
  Sheet sheet;
  sheet.title = "Canon & friends";
  sheet.columns = {{"Model"}, {"Eval Loss", true}, {"Notes", false, true}};
  sheet.rows = {{{"Llama", {}}, {"1.3011 ± 0.0041", 1.3011}, {"reference", {}}},
                {{"Canon_A", {}}, {"1.2755 [1]", 1.2755, true}, {"—", {}}}};
  sheet.footnotes = {"the best of 2 of 4", "100 % measured"};
  sheet.verdicts = {"holds: 1 < 2\nor not"};
  sheet.left_out = {"train_x: other data"};
  REQUIRE(to_latex(sheet, "positions", "profile full · ± of 3 seeds") ==
          "% claim: holds: 1 < 2 or not\n"
          "% left out: train_x: other data\n"
          "\\begin{table}\n"
          "  \\centering\n"
          "  \\caption{Canon \\& friends}\n"
          "  \\label{tab:positions}\n"
          "  \\sbox0{\\begin{tabular}{lrp{0.25\\linewidth}}\n"
          "    \\toprule\n"
          "    Model & Eval Loss & Notes \\\\\n"
          "    \\midrule\n"
          "    Llama & 1.3011 $\\pm$ 0.0041 & reference \\\\\n"
          "    Canon\\_A & \\textbf{1.2755 {[}1]} & --- \\\\\n"
          "    \\bottomrule\n"
          "  \\end{tabular}}%\n"
          "  \\ifdim\\wd0>\\linewidth\\resizebox{\\linewidth}{!}{\\usebox0}"
          "\\else\\usebox0\\fi\n"
          "  \\par\\smallskip\\parbox{\\linewidth}{\\footnotesize "
          "profile full $\\cdot$ $\\pm$ of 3 seeds\\\\\n"
          "    {[}1] the best of 2 of 4\\\\\n"
          "    {[}2] 100~\\% measured}\n"
          "\\end{table}\n");
}

TEST_CASE("a table without notes ends with its rule", "[latex]") {
  Sheet sheet;
  sheet.columns = {{"Model"}};
  sheet.rows = {{{"Llama", {}}}};
  REQUIRE(contains(to_latex(sheet, "x"), "\\else\\usebox0\\fi\n\\end{table}\n"));
}

TEST_CASE("several tables say once what they need", "[latex]") {
  const std::string text = latex_document_part({"A\n", "B\n"});
  REQUIRE(contains(text, "\\usepackage{booktabs}"));
  REQUIRE(contains(text, "\n\nA\n\nB\n"));
}

}  // namespace
}  // namespace forge::report
