#include "core/worker/messages.h"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace forge::worker {
namespace {

constexpr int64_t largest_count = int64_t{1} << 53;  // as JsonReader has it

/// Walks over one flat object. What it does not expect ends it: `fine` is false from then on.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool fine() const { return fine_; }
  bool at_end() const { return position_ == text_.size(); }

  bool take(char wanted) {
    if (position_ >= text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }
  void expect(char wanted) { fine_ = take(wanted) && fine_; }

  /// A string without escapes.
  std::string_view string() {
    expect('"');
    const size_t end = text_.find_first_of("\"\\", position_);
    if (!fine_ || end == std::string_view::npos || text_[end] != '"') {
      fine_ = false;
      return {};
    }
    const std::string_view found = text_.substr(position_, end - position_);
    position_ = end + 1;
    return found;
  }

  void read(std::string_view& text) { text = string(); }
  template <class Number>
  void read(std::optional<Number>& value) {
    read(value.emplace());
  }

  template <class Number>
  void read(Number& value) {
    const std::string_view digits = number_text();
    const char* last = digits.data() + digits.size();
    const auto [end, problem] = std::from_chars(digits.data(), last, value);
    if (problem != std::errc() || end != last) fine_ = false;
    if (std::is_integral_v<Number> && (value < 0 || value > largest_count)) fine_ = false;
  }

 private:
  /// As far as it may be one; JSON has no leading zeros and no words for infinity.
  std::string_view number_text() {
    size_t end = position_;
    while (end < text_.size() && is_of_number(text_[end])) ++end;
    const std::string_view digits = text_.substr(position_, end - position_);
    const size_t first = !digits.empty() && digits[0] == '-' ? 1 : 0;
    if (digits.size() <= first || !is_digit(digits[first]) || !is_digit(digits.back()))
      fine_ = false;
    if (digits.size() > first + 1 && digits[first] == '0' && is_digit(digits[first + 1]))
      fine_ = false;
    position_ = end;
    return digits;
  }
  static bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
  static bool is_of_number(char byte) {
    return is_digit(byte) || byte == '-' || byte == '+' || byte == '.' || byte == 'e' ||
           byte == 'E';
  }

  std::string_view text_;
  size_t position_ = 0;
  bool fine_ = true;
};

/// A visitor of fields (json_fields.h) that reads the value behind one key. Each field has a bit,
/// so that one which is missing or there twice is noticed.
struct FieldScanner {
  std::string_view key;
  Scanner& scanner;
  unsigned found = 0;     ///< bit of the key's field; 0: there is none
  unsigned next_bit = 1;  ///< all fields' bits together, and 1 more, once all are visited

  template <class T>
  void field(const char* name, T& value) {
    if (key == name) {
      scanner.read(value);
      found = next_bit;
    }
    next_bit *= 2;
  }
  template <class T>
  void optional(const char* name, T& value) {
    field(name, value);
  }
};

}  // namespace

std::optional<TrainLine> train_from_line(const std::string& line) {
  Scanner scanner(line);
  TrainLine read;
  std::string_view event;
  unsigned seen = 0, all = 0;
  scanner.expect('{');
  do {
    FieldScanner visit{scanner.string(), scanner};
    scanner.expect(':');
    if (!scanner.fine()) return std::nullopt;
    visit.field("time", read.time);
    visit.field("attempt", read.attempt);
    visit.field("event", event);
    fields(visit, read.metrics);
    if (visit.found == 0 || (seen & visit.found) != 0 || !scanner.fine()) return std::nullopt;
    seen |= visit.found;
    all = visit.next_bit - 1;
  } while (scanner.take(','));
  scanner.expect('}');
  if (!scanner.fine() || !scanner.at_end() || seen != all || event != "train") return std::nullopt;
  if (read.metrics.tokens_per_second == 0.0) return std::nullopt;  // event_from_json knows of it
  return read;
}

}  // namespace forge::worker
