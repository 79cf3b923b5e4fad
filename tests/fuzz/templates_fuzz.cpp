#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/jinja/render.h"
#include "core/yaml/yaml.h"

/// Loader, lexer, parser and evaluator: the input is a template file, with inline templates where
/// it holds markers. What renders is then read as YAML with its origins. An Error is an answer;
/// anything else, and work without end, is a failure.
namespace {

/// A folder in memory, where the system has one, for the file that each input becomes.
std::filesystem::path make_folder() {
  const std::filesystem::path base =
      std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path();
  std::string pattern = (base / "forge-fuzz-XXXXXX").string();
  if (!mkdtemp(pattern.data())) std::abort();
  return pattern;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  static const std::filesystem::path folder = make_folder();
  std::ofstream(folder / "main", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  forge::jinja::RenderRequest request;
  request.search_path = {folder};
  request.template_name = "main";
  request.project_dir = "/project";
  request.workspace_root = "/workspace";
  request.host_environment.home_directory = "/home/ada";
  request.host_environment.working_directory = "/work";
  try {
    const forge::jinja::RenderedText rendered = forge::jinja::render(request);
    forge::yaml::parse(rendered.text,
                       [&](int line, int column) { return rendered.origin(line, column); });
  } catch (const forge::Error& error) {
    forge::describe(error);
  }
  return 0;
}
