#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/command_line.h"

namespace forge::app {

/// How a command that prints a text hands it over.
struct OutputOptions {
  std::string file;  ///< -o, "": standard output
  bool json = false;
};

/// -o and --json.
void add_output_options(const Command& command, OutputOptions& options);

/// On standard output, with two spaces a level.
void print_json(const nlohmann::json& json);
void print_json(const nlohmann::ordered_json& json);

/// Prints the text, or writes it to the file of -o and says so.
void hand_over(const std::string& text, const OutputOptions& options);
void hand_over(const nlohmann::ordered_json& json, const OutputOptions& options);

}  // namespace forge::app
