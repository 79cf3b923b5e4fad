#include "core/base/markdown_text.h"

#include "tests/support/catch.h"

namespace forge::tables {
namespace {

TEST_CASE("Markdown shows a text of others as it stands") {
  CHECK(markdown_text("<b>a|b</b> `c` *d* \\") == "\\<b\\>a\\|b\\</b\\> \\`c\\` \\*d\\* \\\\");
  CHECK(markdown_text("![i](http://x/y.png) [y](javascript:z)") ==
        "\\!\\[i\\](http://x/y.png) \\[y\\](javascript:z)");
  CHECK(markdown_text("&lt;b&gt; &#60; A & B; AT&T") == "&amp;lt;b&amp;gt; &amp;#60; A & B; AT&T");
  CHECK(markdown_text("_a_ b_ __init__") == "\\_a\\_ b\\_ \\_\\_init\\_\\_");
  CHECK(markdown_text("[1](x) ![2][3] [4]: y [x]") ==
        "\\[1\\](x) \\!\\[2\\][3] \\[4\\]: y \\[x\\]");
  CHECK(markdown_text("$x$ and 5 $") == "\\$x\\$ and 5 \\$");
  CHECK(markdown_text("a\n# b") == "a # b");
  for (const char* usual : {"train_llama_4m",
                            "a__b",
                            "3.25 \u00b1 0.01 (3) [1]",
                            "eval_loss[train_b] [0.1, 2]",
                            "-0.5 %!",
                            "~/x y",
                            "5 $"})
    CHECK(markdown_text(usual) == usual);
}

TEST_CASE("a text of others begins no heading, rule or list in Markdown") {
  CHECK(markdown_line("# a") == "\\# a");
  CHECK(markdown_line("- a") == "\\- a");
  CHECK(markdown_line("---") == "\\---");
  CHECK(markdown_line("12. a") == "12\\. a");
  CHECK(markdown_line("   > a") == "\\> a");
  for (const char* usual : {"-0.5 % of it", "3.25 a", "#3", "--flag", "holds: 1"})
    CHECK(markdown_line(usual) == usual);
}

TEST_CASE("a file is the target of a link, whatever its name") {
  CHECK(markdown_target("configs/a_b.yaml") == "configs/a_b.yaml");
  CHECK(markdown_target("a b)(c") == "a%20b%29%28c");
  CHECK(markdown_target("javascript:alert(1)") == "javascript%3Aalert%281%29");
}

}  // namespace
}  // namespace forge::tables
