#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands/data.h"
#include "app/output.h"
#include "app/progress_line.h"
#include "app/terminal.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/fetch/public_texts.h"

namespace forge::app {
namespace {

struct DataGetOptions {
  std::string name;
  std::string folder;
  std::string mirror;
  bool json = false;
};

int list_sources(const DataGetOptions& options) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  std::vector<std::vector<std::string>> lines;
  for (const fetch::PublicText& text : fetch::public_texts()) {
    int64_t bytes = 0;
    for (const fetch::RemoteFile& file : text.files) bytes += file.bytes;
    json.push_back({{"name", text.name}, {"description", text.description}, {"bytes", bytes}});
    lines.push_back({text.name, human_bytes(static_cast<double>(bytes)), text.description});
  }
  std::cout << (options.json ? json_text(json, 2) + "\n" : aligned(lines, {1}));
  return 0;
}

int get(const DataGetOptions& options) {
  if (options.name.empty()) return list_sources(options);
  const fetch::PublicText& text = fetch::find_public_text(options.name);
  const fs::path folder =
      options.folder.empty() ? corpora_dir() / text.name : fs::absolute(options.folder);
  std::vector<fs::path> files;
  {
    ProgressLine line(text.name);
    files = fetch::get_public_text(
        text, folder, options.mirror, [&](double fraction, const std::string& phase) {
          line.show_phase(fraction, phase);
        });
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const fs::path& file : files) {
    const auto bytes = static_cast<int64_t>(fs::file_size(file));
    json.push_back({{"path", file.string()}, {"bytes", bytes}});
    if (!options.json) {
      std::cout << human_bytes(static_cast<double>(bytes)) << "  " << shown_path(file) << "\n";
    }
  }
  if (options.json) print_json(json);
  return 0;
}

}  // namespace

void add_data_get(const Command& data, Program& program) {
  auto options = std::make_shared<DataGetOptions>();
  const Command command = data.add_subcommand("get", "Get a public text from the network");
  command.footer(
      "Examples:\n"
      "  forge data get                            which there are\n"
      "  forge data get tinystories\n"
      "  forge data get wikitext-103 --to texts/ --json\n"
      "\n"
      "Files are checked by their SHA-256. What is broken off is gone on with the next time. A "
      "path\n"
      "such as corpora:tinystories/TinyStories-train.txt in a config names a file that was got.");
  command.add_option("name", options->name, "Which text; without it they are listed")
      .type_name("NAME");
  command.add_option("--to", options->folder, "Folder to put it into; one in the user's cache")
      .type_name("DIR");
  command.add_option("--mirror", options->mirror, "Get the files by their names from here instead")
      .type_name("URL");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context&) { return get(*options); };
  });
}

}  // namespace forge::app
