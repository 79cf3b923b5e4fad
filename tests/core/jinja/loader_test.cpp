#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/jinja/loader.h"
#include "tests/core/jinja/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using jinja::split_inline_templates;

size_t parts_of(const std::string& text) { return split_inline_templates(text).size(); }

TEST_CASE("a marker line cuts a file and belongs to neither part") {
  const auto parts = split_inline_templates("own\n#--- a.b/c ---\none\ntwo\n# ----- d -----\n");
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].text == "own");
  CHECK(parts[1].inline_name == "a.b/c");
  CHECK(parts[1].text == "one\ntwo");
  CHECK(parts[1].first_line == 3);
  CHECK(parts[2].inline_name == "d");
  CHECK(parts[2].text == "");
  CHECK(parts[2].first_line == 6);
}

TEST_CASE("what looks nearly like a marker is none") {
  CHECK(parts_of("#--- a ---\nx\n") == 1);       // the first line
  CHECK(parts_of("x\n#--- a ---") == 1);         // the last line without a newline
  CHECK(parts_of("x\n#--- a --- \ny\n") == 1);   // blanks behind it
  CHECK(parts_of("x\n #--- a ---\ny\n") == 1);   // indented
  CHECK(parts_of("x\n#--- a-b ---\ny\n") == 1);  // a dash in the name
  CHECK(parts_of("x\n#--- a b ---\ny\n") == 1);  // two words
  CHECK(parts_of("x\n#-- a --\ny\n") == 1);      // too few dashes
}

TEST_CASE("of two markers on consecutive lines only the first cuts") {
  const auto parts = split_inline_templates("x\n#--- a ---\n#--- b ---\ny");
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].text == "#--- b ---\ny");
}

TEST_CASE("a marker may be spread over lines") {
  const auto parts = split_inline_templates("x\n#---\nn\n---\ny");
  REQUIRE(parts.size() == 2);
  CHECK(parts[1].inline_name == "n");
  CHECK(parts[1].first_line == 5);
}

TEST_CASE("an inline template goes before a file of its name and extends others") {
  Templates templates({{"main", "-- include 'i'\n\n#--- i ---\n-- extends 'base'\n[k]\nv: 2\n"},
                       {"i", "FILE"},
                       {"base", "pre\n[k]\nv: 1\n"}});
  CHECK(templates.text() == "pre\nv: 2\n");
}

TEST_CASE("an inline template exists once its file was loaded and the last load before use wins") {
  Templates before({{"main", "-- include 'i' ignore missing\nx\n-- include 'p'\n-- include 'i'"},
                    {"p", "P\n#--- i ---\nI"}});
  CHECK(before.text() == "x\nPI");
  Templates parent({{"main", "-- extends 'base'\n[b]\n-- include 'i'\n\n#--- i ---\nchild's\n"},
                    {"base", "[b]\nx\n\n#--- i ---\nparent's\n"}});
  CHECK(parent.text() == "parent's");
  Templates used({{"main", "-- include 's'\n-- include 'p'\n-- include 's'\n#--- s ---\nONE"},
                  {"p", "x\n#--- s ---\nTWO"}});
  CHECK(used.text() == "ONExONE");
}

TEST_CASE("inline templates of one render are unknown to the next") {
  Templates templates({{"main", "-- include 'p'\n-- include 'i'"},
                       {"p", "P\n#--- i ---\nI"},
                       {"other", "-- include 'i'"}});
  CHECK(templates.text() == "PI");
  CHECK(templates.error("other").find("no template 'i'") != std::string::npos);
}

TEST_CASE("search folders are tried in order and missing ones are skipped") {
  Templates first({{"main", "first"}});
  const Templates second({{"main", "second"}, {"only/second", "-- include 'main'"}});
  first.request.search_path = {"/nowhere/at/all", first.folder().path(), second.folder().path()};
  CHECK(first.text() == "first");
  CHECK(first.text("only/second") == "first");
}

TEST_CASE("a template's name is normalised and never leads out of the search path") {
  Templates templates({{"main", "-- include './a//b'"}, {"a/b", "AB"}});
  CHECK(templates.text() == "AB");
  CHECK(templates.text("/main") == "AB");
  CHECK(templates.error("a/../main").find("no template") != std::string::npos);
  CHECK(templates.error("../main").find("without '..'") != std::string::npos);
  CHECK(templates.error("").find("no template") != std::string::npos);
  CHECK(templates.error(std::string("ma\0in", 5)).find("no template") != std::string::npos);
  CHECK(templates.error("a").find("no template") != std::string::npos);  // a folder
}

TEST_CASE("a missing template names the folders that were searched and near misses") {
  Templates templates({{"main", "x\n-- extends 'confgis/base.yaml'"}, {"configs/base.yaml", "x"}});
  CHECK(templates.error() ==
        "main:2:4: error: no template 'confgis/base.yaml' on the search path: FOLDER\n"
        "    -- extends 'confgis/base.yaml'\n"
        "       ^\n"
        "hint: did you mean 'configs/base.yaml'?");
}

TEST_CASE("a file that is not UTF-8 is refused with its line") {
  Templates templates({{"main", "ok\n\xFF\xFE"}});
  CHECK(templates.error().find("main:2: error: the template is not UTF-8 text") == 0);
}

TEST_CASE("the templates of a render are listed in order of loading with who loaded them") {
  Templates templates({{"main", "-- extends 'base'\n-- from 'm' import f\n[b]\n-- include 'i'\n"},
                       {"base", "[b]\n[c]\n-- include 'i'\n"},
                       {"m", "-- macro f()\n-- endmacro"},
                       {"i", "x"}});
  std::string list;
  for (const jinja::LoadedTemplate& loaded : templates.rendered().templates) {
    list += loaded.name + " " + loaded.relation + " by " + loaded.loaded_by + "\n";
  }
  CHECK(list == "main  by \nbase extends by main\nm import by main\ni include by main\n");
}

using jinja::RenderedText;
using jinja::RenderRequest;
using jinja::TemplateCache;

RenderedText render_main(const Templates& templates,
                         const std::string& main,
                         TemplateCache& cache) {
  RenderRequest request = templates.request;
  request.template_name = main;
  return jinja::render(request, cache);
}

TEST_CASE("renders that share a cache read and parse a file once") {
  Templates templates({{"one", "-- extends 'base'\n[b]\none\n"},
                       {"two", "-- extends 'base'\n[b]\ntwo\n"},
                       {"base", "head\n[b]\n[c]\ntail\n"}});
  TemplateCache cache;
  const RenderedText one = render_main(templates, "one", cache);
  CHECK(one.text == "head\none\n\ntail\n");
  templates.folder().write("base", "changed");  // not seen: the file was read
  const RenderedText two = render_main(templates, "two", cache);
  CHECK(two.text == "head\ntwo\n\ntail\n");
  CHECK(one.templates[1].source == two.templates[1].source);
}

TEST_CASE("renders that share a cache share no inline templates and no variables") {
  Templates templates({{"one", "-- set x = 1\n-- include 'p'\n-- include 'i'\n"},
                       {"other", "-- include 'i'"},
                       {"own", "{{ x | default('none') }}\n-- include 'i'\n#--- i ---\nOWN"},
                       {"late", "-- include 'i'\n-- include 'p'\n-- include 'i'\n#--- i ---\nLATE"},
                       {"p", "P\n#--- i ---\nI"}});
  TemplateCache cache;
  CHECK(render_main(templates, "one", cache).text == "PI");
  CHECK(error_of([&] { render_main(templates, "other", cache); }).find("no template 'i'") !=
        std::string::npos);
  CHECK(render_main(templates, "own", cache).text == "none\nOWN");
  CHECK(render_main(templates, "late", cache).text == "LATEPLATE");
  CHECK(render_main(templates, "one", cache).text == "PI");
}

TEST_CASE("a broken template is told to each render with the way that led to it") {
  Templates templates(
      {{"one", "-- include 'bad'\n"}, {"two", "\n-- include 'bad'\n"}, {"bad", "{{ 1 + }}"}});
  TemplateCache cache;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const std::string one = error_of([&] { render_main(templates, "one", cache); });
    const std::string two = error_of([&] { render_main(templates, "two", cache); });
    CHECK(one.find("bad:1:8: error") != std::string::npos);
    CHECK(one.find("one:1:4") != std::string::npos);
    CHECK(two.find("two:2:4") != std::string::npos);
  }
}

TEST_CASE("origins outlive the cache") {
  Templates templates({{"one", "-- include 'p'\n"}, {"p", "a: 1"}});
  RenderedText text;
  {
    TemplateCache cache;
    text = render_main(templates, "one", cache);
  }
  CHECK(origin_of(text, 1, 4) == "p:1:4");
}

TEST_CASE("threads share a cache") {
  std::vector<std::pair<const std::string, std::string>> files = {
      {"base", "-- from 'm' import f\n[a]\n[b]\n== f('x')\n"},
      {"m", "-- macro f(t)\nvalue: {{ t }}\n-- endmacro\n"},
      {"bad", "-- include 'i'\n{% if %}"}};
  const size_t count = 16;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    files.push_back({name, "-- extends 'base'\n[a]\n-- include 'i'\n\n#--- i ---\n" + name + "\n"});
  }
  const Templates templates(files);
  TemplateCache cache;
  std::vector<std::string> texts(8 * count), problems(8 * count);
  parallel_for(texts.size(), [&](size_t i) {
    const RenderedText text = render_main(templates, std::to_string(i % count), cache);
    texts[i] = text.text + origin_of(text, 1, 1);
    problems[i] = error_of([&] { render_main(templates, "bad", cache); });
  });
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string name = std::to_string(i % count);
    CHECK(texts[i] == name + "\nvalue: x\n\n" + name + ":6:1 (inline i)");
    CHECK(problems[i].find("bad:2:") != std::string::npos);
  }
}

}  // namespace
}  // namespace forge::tests
