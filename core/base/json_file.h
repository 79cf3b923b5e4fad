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

/// Throws Error for brackets nested deeper than any file of forge's has them.
void require_shallow_json(std::string_view text);

/// is_discarded() where the file is no JSON. Throws Error where it cannot be read, is longer than
/// `max_bytes` or nested too deeply.
nlohmann::json read_json_file(const std::filesystem::path& file,
                              uintmax_t max_bytes = max_json_file_bytes);

/// read_file for a file that may be of any length. Throws Error where it is longer.
std::string read_file_within(const std::filesystem::path& file, uintmax_t max_bytes);

}  // namespace forge
