#pragma once

#include <string>
#include <string_view>

namespace forge::data {

/// Unicode normalisation form (UAX #15) that a text is brought into.
enum class UnicodeForm { as_given, nfc, nfd, nfkc, nfkd };

/// The text in that form. Bytes that are no well-formed UTF-8 stay as they are. A text in parts
/// that are cut before ASCII characters has the forms of its parts.
std::string normalized(std::string_view text, UnicodeForm form);

}  // namespace forge::data
