#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/jinja/render.h"
#include "tests/support/support.h"

namespace forge::tests {

/// A folder of template files, rendered as on a machine that is always the same.
class Templates {
 public:
  using Files = std::initializer_list<std::pair<const std::string, std::string>>;
  Templates(Files files) : Templates(std::vector<Files::value_type>(files)) {}
  explicit Templates(const std::vector<Files::value_type>& files) {
    for (const auto& [name, text] : files) folder_->write(name, text);
    request.search_path = {folder_->path()};
    request.project_dir = "/projects/demo";
    request.workspace_root = "/projects";
    request.host_environment.unix_time = 1700000000.25;  // 2023-11-14T22:13:20 UTC
    request.host_environment.working_directory = "/work";
    request.host_environment.home_directory = "/home/ada";
    request.host_environment.host_name = "lab";
  }

  jinja::RenderedText rendered(const std::string& main = "main") {
    request.template_name = main;
    return jinja::render(request);
  }
  std::string text(const std::string& main = "main") { return rendered(main).text; }
  /// The whole message of the error, with the folder's name taken off every path.
  std::string error(const std::string& main = "main") {
    std::string message = error_of([&] { rendered(main); });
    const std::string folder = folder_->path().string();
    for (size_t at = message.find(folder); at != std::string::npos; at = message.find(folder)) {
      const bool is_whole =
          at + folder.size() >= message.size() || message[at + folder.size()] != '/';
      message.replace(at, folder.size() + (is_whole ? 0 : 1), is_whole ? "FOLDER" : "");
    }
    return message;
  }
  const TemporaryFolder& folder() const { return *folder_; }

  jinja::RenderRequest request;

 private:
  std::unique_ptr<TemporaryFolder> folder_ = std::make_unique<TemporaryFolder>();
};

/// Text of one template without others.
inline std::string rendered(const std::string& text) { return Templates({{"main", text}}).text(); }
inline std::string render_error(const std::string& text) {
  return Templates({{"main", text}}).error();
}

/// "file:line:column (inline NAME)" that wrote a place of the output.
inline std::string origin_of(const jinja::RenderedText& text, int line, int column) {
  const SourceSpan span = text.origin(line, column);
  const std::string place = span.describe();
  return place.substr(place.find_last_of('/', place.find(':')) + 1);
}

}  // namespace forge::tests
