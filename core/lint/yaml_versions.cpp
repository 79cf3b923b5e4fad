#include <algorithm>
#include <cstdlib>

#include "core/base/text.h"
#include "core/lint/rules.h"
#include "core/python/plain_scalar.h"

namespace forge::lint {
namespace {

using python::PlainScalar;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// Takes the characters of `set` off the front; how many there were.
size_t skip(std::string_view& text, const char* set) {
  const size_t count = std::min(text.find_first_not_of(set), text.size());
  text.remove_prefix(count);
  return count;
}

constexpr const char* digits = "0123456789";

/// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_real_of_1_2(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const size_t before = skip(text, digits);
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    if (skip(text, digits) + before == 0) return false;
  } else if (before == 0) {
    return false;
  }
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return skip(text, digits) > 0 && text.empty();
}

void set_integer(std::string_view text, int base, PlainScalar& scalar) {
  errno = 0;
  scalar.integer = std::strtoll(std::string(text).c_str(), nullptr, base);
  scalar.overflow = errno == ERANGE;
}

/// The value by the core schema of YAML 1.2. Integers beyond 64 bits count as overflow.
PlainScalar resolve_by_1_2(std::string_view text) {
  using Kind = PlainScalar::Kind;
  PlainScalar scalar;
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) {
    scalar.kind = Kind::null;
  } else if (is_one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) {
    scalar.kind = Kind::boolean;
    scalar.boolean = text[0] == 't' || text[0] == 'T';
  } else if (is_real_of_1_2(text)) {
    const bool is_integer = text.find_first_of(".eE") == std::string_view::npos;
    scalar.kind = is_integer ? Kind::integer : Kind::real;
    if (is_integer) set_integer(text, 10, scalar);
    scalar.real = std::strtod(std::string(text).c_str(), nullptr);
  } else if (text.size() > 2 && text[0] == '0' && (text[1] == 'o' || text[1] == 'x')) {
    const bool octal = text[1] == 'o';
    std::string_view rest = text.substr(2);
    if (skip(rest, octal ? "01234567" : "0123456789abcdefABCDEF") == 0 || !rest.empty()) {
      return scalar;
    }
    scalar.kind = Kind::integer;
    set_integer(text.substr(2), octal ? 8 : 16, scalar);
  } else if (is_one_of(text, {".nan", ".NaN", ".NAN"})) {
    scalar.kind = Kind::real;
  } else {
    std::string_view unsigned_text = text;
    if (text[0] == '-' || text[0] == '+') unsigned_text.remove_prefix(1);
    if (is_one_of(unsigned_text, {".inf", ".Inf", ".INF"})) scalar.kind = Kind::real;
  }
  return scalar;
}

std::string describe(const PlainScalar& scalar) {
  switch (scalar.kind) {
    case PlainScalar::Kind::null: return "null";
    case PlainScalar::Kind::boolean: return scalar.boolean ? "true" : "false";
    case PlainScalar::Kind::integer: return "the number " + std::to_string(scalar.integer);
    case PlainScalar::Kind::real: return "the number " + shortest(scalar.real);
    case PlainScalar::Kind::timestamp: return "a date";
    default: return "text";
  }
}

bool is_number(const PlainScalar& scalar) {
  return scalar.kind == PlainScalar::Kind::integer || scalar.kind == PlainScalar::Kind::real;
}

/// A real number as both versions read it: with a dot and, before an exponent, a sign.
std::string plain_real(std::string text) {
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string::npos) {
    const bool has_sign = text[exponent + 1] == '-' || text[exponent + 1] == '+';
    if (!has_sign) text.insert(exponent + 1, "+");
    if (text.find('.') == std::string::npos) text.insert(exponent, ".0");
  }
  if (!text.empty() && text[0] == '+') text.erase(0, 1);
  return text;
}

std::string advice_for(std::string_view text, const PlainScalar& old, const PlainScalar& newer) {
  if (old.kind == PlainScalar::Kind::boolean) {
    return std::string("write ") + (old.boolean ? "true" : "false") + ", or quote it as text";
  }
  if (newer.kind == PlainScalar::Kind::real && old.kind == PlainScalar::Kind::string) {
    return "write " + plain_real(std::string(text));
  }
  if (is_number(old)) {
    const std::string number =
        old.kind == PlainScalar::Kind::integer ? std::to_string(old.integer) : shortest(old.real);
    return "write " + number + ", or quote it as text";
  }
  if (newer.kind == PlainScalar::Kind::integer) {
    return "write " + std::to_string(newer.integer) + ", or quote it as text";
  }
  return "quote it as text";
}

}  // namespace

std::optional<YamlVersionDifference> yaml_version_difference(std::string_view plain) {
  // Most words can mean nothing but text, in any version.
  if (plain.empty() || plain.size() > 64) return std::nullopt;
  const PlainScalar old = python::resolve_plain_scalar(plain);
  const PlainScalar newer = resolve_by_1_2(plain);
  if (old.kind == PlainScalar::Kind::merge || old.kind == PlainScalar::Kind::value) {
    return std::nullopt;
  }
  const bool same_kind = old.kind == newer.kind;
  const bool same = same_kind && old.boolean == newer.boolean &&
                    (old.overflow || newer.overflow || old.integer == newer.integer);
  if (same) return std::nullopt;
  const bool is_text_or_real =
      old.kind == PlainScalar::Kind::string && newer.kind == PlainScalar::Kind::real;
  return YamlVersionDifference{
      describe(old), describe(newer), advice_for(plain, old, newer), is_text_or_real};
}

namespace {

/// Whether quotes stand at a place: a key keeps no record of its own.
bool is_quoted(const SourceSpan& place) {
  const std::string line = place.line_text();
  const auto at = static_cast<size_t>(std::max(place.column, 1)) - 1;
  return at < line.size() && (line[at] == '"' || line[at] == '\'');
}

/// Booleans of YAML 1.1 that PyYAML takes for text.
bool is_letter(const std::string& text) { return is_one_of(text, {"y", "Y", "n", "N"}); }

/// The difference that a plain scalar makes. `what` precedes it in the message: "" or "the key ".
std::optional<Finding> find_difference(bool is_experiment,
                                       const std::string& text,
                                       const SourceSpan& where,
                                       const std::string& what) {
  Finding finding{Severity::note, "yaml-versions", where, what + "'" + text + "' is ", "", text};
  if (is_letter(text)) {
    finding.message += "a boolean to some readers of YAML 1.1";
    finding.hint = "quote it";
    return finding;
  }
  const auto readings = yaml_version_difference(text);
  // forge's own reader takes 1e-3 for the number that it is, wherever one is wanted.
  if (!readings || (is_experiment && readings->is_text_or_real)) return std::nullopt;
  if (!is_experiment) finding.severity = Severity::warning;
  finding.message +=
      readings->in_1_1 + " in YAML 1.1 (PyYAML) and " + readings->in_1_2 + " in YAML 1.2";
  finding.hint = readings->advice;
  return finding;
}

}  // namespace

void check_scalars(const CheckedConfig& checked, Findings& findings) {
  const auto check = [&](const std::string& text, const SourceSpan& where, const char* what) {
    auto finding = find_difference(checked.is_experiment, text, where, what);
    if (finding) findings.push_back(*std::move(finding));
  };
  for (const yaml::Node* node : checked.nodes) {
    if (node->is_scalar() && node->plain && node->tag.empty()) check(node->text, node->origin, "");
    for (const yaml::Entry& entry : node->entries) {
      const bool may_differ = !entry.key_is_string || is_letter(entry.key);
      const bool is_plain = may_differ && !is_quoted(entry.key_origin);
      if (is_plain) check(entry.key, entry.key_origin, "the key ");
    }
  }
}

}  // namespace forge::lint
