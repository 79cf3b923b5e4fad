#include "core/report/page/page.h"

#include "core/base/error.h"
#include "core/base/json_text.h"

namespace forge::report::page {
namespace {

/// Text between tags.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      default: result += c;
    }
  }
  return result;
}

/// JSON that ends no script element, whatever its texts are.
std::string for_script(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<': result += "\\u003c"; break;
      case '>': result += "\\u003e"; break;
      default: result += c;
    }
  }
  return result;
}

/// The text that stands for {{name}} in the template.
std::string part(const std::string& name, const Page& page, const Assets& assets) {
  if (name == "title") return escaped(page.title);
  if (name == "style") return std::string(assets.plot_style) + "\n" + std::string(assets.style);
  if (name == "licence") return std::string(assets.plot_licence);
  if (name == "plot_script") return std::string(assets.plot_script);
  if (name == "script") return std::string(assets.script);
  if (name == "data") return for_script(json_text(to_json(page)));
  throw Error("template.html has an unknown part '" + name + "'");
}

}  // namespace

std::string to_html(const Page& page, const Assets& assets) {
  if (assets.plot_script.empty()) {
    throw Error("this forge was built without uPlot, which draws the curves of a report",
                {},
                "scripts/setup fetches it from the npm registry; then build forge again");
  }
  const std::string_view text = assets.page;
  std::string html;
  size_t end = 0;
  for (size_t mark = text.find("{{"); mark != text.npos; mark = text.find("{{", end)) {
    html += text.substr(end, mark - end);
    end = text.find("}}", mark) + 2;
    html += part(std::string(text.substr(mark + 2, end - mark - 4)), page, assets);
  }
  html += text.substr(end);
  return html;
}

}  // namespace forge::report::page
