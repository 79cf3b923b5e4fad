#include "core/templating/template_cache.h"

#include <string>
#include <vector>

#include "core/base/fs.h"
#include "core/base/parallel.h"
#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using templating::RenderedText;
using templating::RenderRequest;
using templating::TemplateCache;

RenderedText render_main(const Templates& templates,
                         const std::string& main,
                         TemplateCache& cache) {
  RenderRequest request = templates.request;
  request.template_name = main;
  return templating::render(request, cache);
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
