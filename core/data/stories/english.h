#pragma once

#include <string>
#include <string_view>

/// English inflection for the generated stories: regular forms by rule, irregular ones from lists.
/// Phrases inflect in the word that carries the form: a verb phrase in its first word ("feed the
/// hens" -> "feeding the hens"), a noun phrase in its last, or
/// before "of" ("oak tree" -> "oak trees", "bar of soap" -> "bars of soap").
namespace forge::data::stories {

std::string plural(std::string_view noun);
std::string third_person(std::string_view verb);        ///< "carries"
std::string past(std::string_view verb);                ///< "carried", "went"
std::string past_participle(std::string_view verb);     ///< "carried", "gone"
std::string present_participle(std::string_view verb);  ///< "carrying"
std::string comparative(std::string_view adjective);    ///< "happier", "more careful"
std::string superlative(std::string_view adjective);    ///< "happiest", "most careful"

/// The phrase with "a" or "an" in front, by its first sound.
std::string with_article(std::string_view phrase);

}  // namespace forge::data::stories
