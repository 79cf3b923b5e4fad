#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace forge {

/// The result of `pick`, a member or a function, for each item.
template <class Items, class Pick>
std::vector<std::string> texts_of(const Items& items, const Pick& pick) {
  std::vector<std::string> texts;
  for (const auto& item : items) texts.push_back(std::invoke(pick, item));
  return texts;
}

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
bool starts_with(std::string_view text, std::string_view prefix);
bool ends_with(std::string_view text, std::string_view suffix);

/// Number of single-character insertions, deletions, replacements and swaps of neighbours from one
/// word to the other.
int edit_distance(std::string_view a, std::string_view b);

/// Those of `known` that a misspelt `word` may have meant, nearest first, at most three. Where none
/// is near, those that contain it.
std::vector<std::string> near_misses(std::string_view word, const std::vector<std::string>& known);

/// "did you mean 'a' or 'b'?" for near misses of `word` among `known`, else `fallback`.
std::string did_you_mean(std::string_view word,
                         const std::vector<std::string>& known,
                         const std::string& fallback = "");

/// The word, or words, as a POSIX shell reads them back: quoted where needed. Control characters
/// are written as $'\n'-like escapes, so that a printed command cannot act before it is pasted.
std::string shell_quoted(std::string_view word);
std::string shell_quoted(const std::vector<std::string>& words);

/// A command that shell_quoted wrote, for a sentence: in quotes, unless it has quotes of its own,
/// which would end them.
std::string quoted_command(const std::string& command);

/// A recorded command as it can be pasted: unchanged where shell_quoted wrote it, else with its
/// words, between spaces, quoted. So a record that somebody else wrote runs one command at most.
std::string pasteable(const std::string& command);

/// 1234567 -> "1,234,567".
std::string with_thousands(long long number);

/// "1 seed", "1,000 seeds".
std::string counted(size_t count, const std::string& noun);

/// Bytes in binary units with two decimals: "512 B", "1.50 MiB", "2.12 GiB".
std::string human_bytes(double bytes);

/// Seconds as "42s", "3m 20s", "2h 05m".
std::string human_duration(double seconds);

/// Shortest decimal text that reads back as the same double, as Python's repr prints it
/// ("0.001", "1e-05", "6.0", "nan", "inf").
std::string shortest(double number);

}  // namespace forge
