#include "core/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace forge {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string joined;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) joined += separator;
    joined += parts[i];
  }
  return joined;
}

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before_last, last, row(b.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::move(last);
    last = row;
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row.back();
}

std::vector<std::string> near_misses(std::string_view word, const std::vector<std::string>& known) {
  // Nobody misspells the dashes of an option.
  const size_t dashes = std::min(word.find_first_not_of('-'), word.size());
  const int limit = std::max(1, static_cast<int>(word.size() - dashes) / 3);
  std::vector<std::pair<int, std::string>> found;
  for (const std::string& candidate : known) {
    const int distance = edit_distance(word, candidate);
    const bool continues_word = word.size() >= 3 && starts_with(candidate, word);
    if (distance <= limit || continues_word) found.emplace_back(distance, candidate);
  }
  if (found.empty() && word.size() >= 4) {
    for (const std::string& candidate : known) {
      if (candidate.find(word) != std::string::npos)
        found.emplace_back(static_cast<int>(candidate.size()), candidate);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.size() > 3) found.resize(3);
  std::vector<std::string> names;
  for (auto& [distance, name] : found) names.push_back(std::move(name));
  return names;
}

std::string did_you_mean(std::string_view word,
                         const std::vector<std::string>& known,
                         const std::string& fallback) {
  const std::vector<std::string> names = near_misses(word, known);
  if (names.empty()) return fallback;
  std::string text = "did you mean ";
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += "'" + names[i] + "'";
  }
  return text + "?";
}

std::string shell_quoted(std::string_view word) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           std::strchr("_@%+=:,./-", c) != nullptr;
  };
  // zsh reads a leading = as the path of a program.
  const bool plain = !word.empty() && word[0] != '=' && word.find('\0') == std::string_view::npos &&
                     std::all_of(word.begin(), word.end(), is_plain);
  if (plain) return std::string(word);
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  const bool escaped = std::any_of(word.begin(), word.end(), is_control);
  std::string quoted = escaped ? "$'" : "'";
  for (const char c : word) {
    if (is_control(static_cast<unsigned char>(c))) {
      char code[8];
      std::snprintf(code, sizeof code, "\\%03o", static_cast<unsigned>(c));
      quoted += code;
    } else if (c == '\'') {
      quoted += escaped ? "\\'" : "'\\''";
    } else {
      quoted += escaped && c == '\\' ? "\\\\" : std::string(1, c);
    }
  }
  return quoted + "'";
}

std::string shell_quoted(const std::vector<std::string>& words) {
  return join(texts_of(words, [](const std::string& word) { return shell_quoted(word); }), " ");
}

std::string quoted_command(const std::string& command) {
  return command.find('\'') == std::string::npos ? "'" + command + "'" : command;
}

namespace {

/// The words of what shell_quoted wrote; of other texts some words.
std::vector<std::string> shell_words(std::string_view text) {
  std::vector<std::string> words(1);
  char quote = '\0';  // of what is being read: ' or, for $'…', $
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '\0' && c == ' ') {
      words.emplace_back();
    } else if (quote == '\0' && (c == '\'' || text.substr(i, 2) == "$'")) {
      quote = c;
      i += c == '$' ? 1 : 0;
    } else if (quote != '\0' && c == '\'') {
      quote = '\0';
    } else if (quote != '\'' && c == '\\' && i + 1 < text.size()) {
      const auto is_octal = [](char digit) { return digit >= '0' && digit <= '7'; };
      const std::string_view code = text.substr(i + 1, 3);
      const bool is_code = code.size() == 3 && std::all_of(code.begin(), code.end(), is_octal);
      words.back() +=
          is_code ? static_cast<char>(std::stoi(std::string(code), nullptr, 8)) : code[0];
      i += is_code ? 3 : 1;
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

std::string pasteable(const std::string& command) {
  const std::string as_written = shell_quoted(shell_words(command));
  return as_written == command ? command : shell_quoted(split(command, ' '));
}

std::string with_thousands(long long number) {
  std::string digits = std::to_string(number < 0 ? -number : number);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(i, ",");
  return number < 0 ? "-" + digits : digits;
}

std::string counted(size_t count, const std::string& noun) {
  return with_thousands(static_cast<long long>(count)) + " " + noun + (count == 1 ? "" : "s");
}

std::string human_bytes(double bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", bytes, units[unit]);
  return text;
}

std::string human_duration(double seconds) {
  const long long total = std::llround(std::max(0.0, seconds));
  char text[48];
  if (total < 60) {
    std::snprintf(text, sizeof text, "%llds", total);
  } else if (total < 3600) {
    std::snprintf(text, sizeof text, "%lldm %02llds", total / 60, total % 60);
  } else {
    std::snprintf(text, sizeof text, "%lldh %02lldm", total / 3600, total / 60 % 60);
  }
  return text;
}

std::string shortest(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  // Python's repr: the shortest digits, in positional notation for exponents -4 … 15.
  char scientific[40];
  const auto end = std::to_chars(
      scientific, scientific + sizeof scientific, number, std::chars_format::scientific);
  std::string text(scientific, end.ptr);
  const size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent > 15) return text;
  char positional[40];
  const auto fixed_end =
      std::to_chars(positional, positional + sizeof positional, number, std::chars_format::fixed);
  text.assign(positional, fixed_end.ptr);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

}  // namespace forge
