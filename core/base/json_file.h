#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// JSON files that somebody else may have written. The parser holds some twenty times a text's
/// bytes and follows any depth, so both are checked before it begins.
namespace forge {

/// A run's config and what stands beside it have kilobytes.
constexpr uintmax_t max_json_file_bytes = uintmax_t{8} << 20;

/// No file of forge's has brackets nested deeper.
constexpr int max_json_depth = 100;

/// Throws Error for brackets nested deeper.
void require_shallow_json(std::string_view text, int max_depth = max_json_depth);

/// is_discarded() where the text is no JSON. Throws Error for brackets nested deeper than
/// `max_depth`, and for an object that has a key twice: readers differ in which of the two counts.
nlohmann::json read_json_text(std::string_view text, int max_depth = max_json_depth);

/// The same of a file. Throws Error naming it, also where it cannot be read or is longer than
/// `max_bytes`.
nlohmann::json read_json_file(const std::filesystem::path& file,
                              uintmax_t max_bytes = max_json_file_bytes);

/// read_file for a file that may be of any length. Throws Error where it is longer.
std::string read_file_within(const std::filesystem::path& file, uintmax_t max_bytes);

}  // namespace forge
