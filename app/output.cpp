#include "app/output.h"

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "core/base/json_text.h"

namespace forge::app {

void add_output_options(const Command& command, OutputOptions& options) {
  command.add_option("-o,--output", options.file, "Write to a file instead").type_name("FILE");
  command.add_flag("--json", options.json, "As JSON");
}

void hand_over(const std::string& text, const OutputOptions& options) {
  if (options.file.empty()) {
    std::cout << text;
    return;
  }
  std::error_code ignored;
  if (fs::exists(options.file, ignored) && !fs::is_regular_file(options.file, ignored)) {
    std::ofstream(options.file) << text;  // a pipe or device takes the text, it is not replaced
    return;
  }
  write_file_atomic(options.file, text);
  std::cout << "Wrote output to " << options.file << "\n";
}

void hand_over(const nlohmann::ordered_json& json, const OutputOptions& options) {
  // A text of any bytes has to come out; JSON knows only Unicode.
  hand_over(json_text(json, 2) + "\n", options);
}

}  // namespace forge::app
