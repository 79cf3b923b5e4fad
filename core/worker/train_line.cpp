#include "core/worker/messages.h"

#include <charconv>
#include <cstdint>
#include <string_view>

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

  double number() {
    double value = 0;
    const std::string_view digits = number_text();
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc() || end != digits.data() + digits.size()) fine_ = false;
    return value;
  }

  int64_t count() {
    int64_t value = -1;
    const std::string_view digits = number_text();
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (problem != std::errc() || end != digits.data() + digits.size()) fine_ = false;
    if (value < 0 || value > largest_count) fine_ = false;
    return value;
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

/// A bit for each field, so that one which is missing or there twice is noticed.
enum Field {
  time = 1,
  attempt = 2,
  event = 4,
  step = 8,
  tokens = 16,
  loss = 32,
  learning_rate = 64,
  gradient_norm = 128,
  tokens_per_second = 256,
  elapsed_seconds = 512,
  all_fields = 1023
};

/// Reads the value behind the key; 0 where the key is none of a train event's.
int read_field(std::string_view key, Scanner& scanner, TrainLine& line) {
  TrainMetrics& metrics = line.metrics;
  const auto number = [&](Field field, double& value) {
    value = scanner.number();
    return field;
  };
  const auto count = [&](Field field, int64_t& value) {
    value = scanner.count();
    return field;
  };
  if (key == "event") return scanner.string() == "train" ? event : 0;
  if (key == "step") return count(step, metrics.step);
  if (key == "tokens") return count(tokens, metrics.tokens);
  if (key == "loss") return number(loss, metrics.loss);
  if (key == "learning_rate") return number(learning_rate, metrics.learning_rate);
  if (key == "gradient_norm") return number(gradient_norm, metrics.gradient_norm);
  if (key == "tokens_per_second") return number(tokens_per_second, metrics.tokens_per_second);
  if (key == "elapsed_seconds") return number(elapsed_seconds, metrics.elapsed_seconds);
  if (key == "time") return number(time, line.time);
  if (key != "attempt") return 0;
  const int64_t value = scanner.count();
  line.attempt = static_cast<int>(value);
  return value == line.attempt ? attempt : 0;
}

}  // namespace

std::optional<TrainLine> train_from_line(const std::string& line) {
  Scanner scanner(line);
  TrainLine read;
  int seen = 0;
  scanner.expect('{');
  do {
    const std::string_view key = scanner.string();
    scanner.expect(':');
    if (!scanner.fine()) return std::nullopt;
    const int field = read_field(key, scanner, read);
    if (field == 0 || (seen & field) != 0 || !scanner.fine()) return std::nullopt;
    seen |= field;
  } while (scanner.take(','));
  scanner.expect('}');
  if (!scanner.fine() || !scanner.at_end() || seen != all_fields) return std::nullopt;
  return read;
}

}  // namespace forge::worker
