#include "core/data/piece_symbols.h"

#include "core/base/text.h"

namespace forge::data {
namespace {

constexpr std::string_view digits = "0123456789ABCDEF";

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    result.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return result.append(text);
}

}  // namespace

std::string with_spaces(std::string_view text) { return replaced(text, space_symbol, " "); }

std::string with_space_symbols(std::string_view text) { return replaced(text, " ", space_symbol); }

std::string name_of_byte(uint8_t byte) {
  return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
}

std::optional<uint8_t> byte_of_name(std::string_view name) {
  if (name.size() != 6 || !starts_with(name, "<0x") || name[5] != '>') return std::nullopt;
  const size_t high = digits.find(name[3]);
  const size_t low = digits.find(name[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

}  // namespace forge::data
