#include "core/python/format.h"
#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"
#include "core/python/unicode.h"

namespace forge::python {
namespace {

constexpr size_t npos = std::string_view::npos;

/// Walks one `%…` directive after another.
class PercentFormatter {
 public:
  PercentFormatter(std::string_view format, const Value& values) : rest_(format), values_(values) {
    is_tuple_ = values.kind() == Value::Kind::tuple;
  }

  std::string format() {
    std::string text;
    while (!rest_.empty()) {
      const size_t literal = std::min(rest_.find('%'), rest_.size());
      text += rest_.substr(0, literal);
      rest_.remove_prefix(literal);
      if (!rest_.empty()) text += directive();
      require_text_size(text.size());
    }
    const size_t given = is_tuple_ ? values_.items().size() : 1;
    // Python takes all that has items for a mapping, of which nothing need be used.
    const bool has_items = values_.is_dict() || values_.kind() == Value::Kind::list ||
                           values_.is_undefined() || values_.object_as<Range>();
    if (next_ < given && !has_items) {
      throw OperationError("not all arguments converted during string formatting");
    }
    return text;
  }

 private:
  char take() {
    if (rest_.empty()) throw OperationError("incomplete format");
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }

  int take_number() {
    if (!rest_.empty() && rest_[0] == '*') {
      take();
      const Value value = next_value();
      if (!value.is_integral()) throw OperationError("* wants int");
      return static_cast<int>(
          std::min<int64_t>(std::max<int64_t>(value.as_integer(), -1000), 1000));
    }
    int number = 0;
    while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9' && number < 1'000'000) {
      number = number * 10 + (take() - '0');
    }
    return number;
  }

  std::string directive() {
    take();
    if (!rest_.empty() && rest_[0] == '%') return std::string(1, take());
    const Value* keyed = take_key();
    FormatSpecification spec;
    bool left = false;
    for (; !rest_.empty() && std::string_view("-+ #0").find(rest_[0]) != npos; take()) {
      if (rest_[0] == '-') left = true;
      if (rest_[0] == '+' || (rest_[0] == ' ' && !spec.sign)) spec.sign = rest_[0];
      if (rest_[0] == '#') spec.alternate = true;
      if (rest_[0] == '0') spec.fill = "0";
    }
    const int width = take_number();
    left = left || width < 0;
    spec.width = static_cast<size_t>(std::abs(width));
    if (!rest_.empty() && rest_[0] == '.') {
      take();
      spec.precision = std::max(take_number(), 0);
      if (*spec.precision > 1000) throw OperationError("precision too large in a format");
    }
    while (!rest_.empty() && std::string_view("hlL").find(rest_[0]) != npos) take();
    const char type = take();
    return convert(keyed ? *keyed : next_value(), type, spec, left);
  }

  /// The value of a `%(key)s`, or null where there is no key.
  const Value* take_key() {
    if (rest_.empty() || rest_[0] != '(') return nullptr;
    const size_t end = rest_.find(')');
    if (end == npos) throw OperationError("incomplete format key");
    if (!values_.is_dict()) throw OperationError("format requires a mapping");
    const std::string key(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    const Value* value = values_.as_dict().find(Value::string(key));
    if (!value) throw OperationError("the format names '" + key + "', which the mapping lacks");
    return value;
  }

  const Value& next_value() {
    const size_t given = is_tuple_ ? values_.items().size() : 1;
    if (next_ >= given) throw OperationError("not enough arguments for format string");
    const size_t index = next_++;
    return is_tuple_ ? values_.items()[index] : values_;
  }

  static std::string convert(const Value& value, char type, FormatSpecification spec, bool left) {
    if (type == 's' || type == 'r' || type == 'a') {
      spec.fill = " ";
      return spec.pad(spec.truncated(type == 's'   ? str_of(value)
                                     : type == 'r' ? repr_of(value)
                                                   : ascii_of(value)),
                      "",
                      left ? '<' : '>');
    }
    require_defined(value);
    if (type == 'c') {
      spec.fill = " ";
      return spec.pad(character(value), "", left ? '<' : '>');
    }
    if (std::string_view("diuoxXeEfFgG").find(type) == npos) {
      throw OperationError(std::string("unsupported format character '") + type + "'");
    }
    if (!value.is_number()) {
      throw OperationError(std::string("%") + type + " format: a number is required, not " +
                           type_name(value));
    }
    if (std::string_view("oxX").find(type) != npos && !value.is_integral()) {
      throw OperationError(std::string("%") + type + " format: an integer is required, not " +
                           type_name(value));
    }
    if (left) spec.fill = " ";
    const char alignment = left ? '<' : spec.fill == "0" ? '=' : '>';
    std::string specification = spec.sign ? std::string(1, spec.sign) : "";
    if (spec.alternate) specification += '#';
    const bool whole = std::string_view("diuoxX").find(type) != npos;
    if (!whole) specification += "." + std::to_string(spec.precision.value_or(6));
    specification += type == 'i' || type == 'u' ? 'd' : type;
    const std::string number =
        format_value(whole ? Value::integer(truncate(value)) : value, specification);
    const size_t sign = std::string_view("+- ").find(number[0]) != npos ? 1 : 0;
    const bool has_base = spec.alternate && std::string_view("oxX").find(type) != npos;
    const size_t before = sign + (has_base ? 2 : 0);
    std::string digits = number.substr(before);
    // Of an integer the precision is the least number of digits.
    const auto least = static_cast<size_t>(whole ? spec.precision.value_or(0) : 0);
    if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
    return spec.pad(digits, number.substr(0, before), alignment);
  }

  /// What %c writes: a text of one character, or the character of that number.
  static std::string character(const Value& value) {
    if (value.is_string() && length_of(value.as_string()) == 1) return value.as_string();
    if (!value.is_integral())
      throw OperationError("%c format: a number or one character is required, not " +
                           (value.is_string() ? repr_of(value) : type_name(value)));
    std::string text;
    append_character(text, value.as_integer());
    return text;
  }

  static int64_t truncate(const Value& value) {
    if (value.is_integral()) return value.as_integer();
    const double number = value.as_real();
    if (!(number > -9.2e18 && number < 9.2e18))
      throw OperationError("the number of an integer format does not fit 64 bits");
    return static_cast<int64_t>(number);
  }

  std::string_view rest_;
  const Value& values_;
  bool is_tuple_ = false;
  size_t next_ = 0;
};

}  // namespace

std::string percent_format(std::string_view format, const Value& values) {
  return PercentFormatter(format, values).format();
}

}  // namespace forge::python
