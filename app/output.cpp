#include "app/output.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/json_text.h"
#include "core/base/output_file.h"

namespace forge::app {

void print_json(const nlohmann::json& json) { std::cout << json_text(json, 2) << "\n"; }
void print_json(const nlohmann::ordered_json& json) { std::cout << json_text(json, 2) << "\n"; }

void add_output_options(const Command& command, OutputOptions& options) {
  command.add_option("-o,--output", options.file, "Write to a file instead").type_name("FILE");
  command.add_flag("--json", options.json, "As JSON");
}

void hand_over(const std::string& text, const OutputOptions& options) {
  if (options.file.empty()) {
    std::cout << text;
    return;
  }
  write_output_file(options.file, text);
  std::cout << "Wrote output to " << options.file << "\n";
}

void hand_over(const nlohmann::ordered_json& json, const OutputOptions& options) {
  // A text of any bytes has to come out; JSON knows only Unicode.
  hand_over(json_text(json, 2) + "\n", options);
}

}  // namespace forge::app
