#include "core/base/whole_id.h"

#include <string_view>

namespace forge {

bool is_whole_id(const std::string& id) {
  constexpr size_t key_digits = 12;
  const auto ends_in_key = [](std::string_view text) {
    if (text.size() <= key_digits + 1 || text[text.size() - key_digits - 1] != '-') return false;
    return text.find_last_not_of("0123456789abcdef") == text.size() - key_digits - 1;
  };
  const std::string_view text = id;
  const size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return false;
  const std::string_view last = text.substr(dash + 1);
  const bool is_number =
      !last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos;
  return ends_in_key(text) || (is_number && ends_in_key(text.substr(0, dash)));
}

}  // namespace forge
