#pragma once

#include <string>
#include <string_view>

/// Texts that hold a hash of themselves, so that a file as a program wrote it is told from one that
/// somebody edited since.
namespace forge {

/// What begins the hash within a text.
constexpr std::string_view own_hash_name = "forge-hash:";

/// Where a text is to have its hash: the name and as many zeros as a hash has digits.
std::string own_hash_mark();

/// The text with its hash in the place of each mark.
std::string with_own_hash(std::string text);

/// Whether the text is as with_own_hash made it. False for one without a hash.
bool has_own_hash(std::string text);

}  // namespace forge
