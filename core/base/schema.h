#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

/// What sections of a config have in common. A section is a plain struct with a function
/// `fields(visitor, struct)` beside it, which calls the visitor with every key, its field, its
/// meaning and its limits. Reading YAML, reading and writing JSON, listing keys and completing them
/// are visitors. A visitor has
///     template <class T> void field(const char* key, T& value, const char* help, Limits = {});
///     template <class T>
///     void section(const char* key, T& value, const char* help, Limits = {});
///     template <class T>
///     void sections(const char* key, std::map<std::string, T>& values, const char* help);
///     void rest(std::map<std::string, JsonText>& values, const char* help);
/// `section` calls `fields(visitor, value)` for the inner keys, and `sections` does so for each
/// value of a map whose names the user chooses. `rest`, called last, takes the keys of a section
/// that the schema does not know: their names and types are the user's choice. Values of an
/// enumeration are spelled by `names_of(Enum)`, found beside the enumeration, in the order of its
/// declaration.
namespace forge::schema {

struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_included = true;
  bool required = false;
  bool nullable = false;        ///< null is a value: it stands for what follows from other keys
  bool written_if_set = false;  ///< see if_set
};
inline Limits at_least(double low) { return {low, std::numeric_limits<double>::infinity()}; }
inline Limits above(double low) { return {low, std::numeric_limits<double>::infinity(), false}; }
inline Limits between(double low, double high) { return {low, high}; }
/// A size: so large that no parameter or token count overflows 64 bits.
inline Limits up_to(int64_t largest) { return between(1, static_cast<double>(largest)); }
inline Limits required(Limits limits = {}) {
  limits.required = true;
  return limits;
}
inline Limits or_null(Limits limits) {
  limits.nullable = true;
  return limits;
}

/// An optional key, or a section, that JSON has only where it is set (a section: has another value
/// than the default): files and identities of runs from before it was there stay what they were.
inline Limits if_set(Limits limits = {}) {
  limits.written_if_set = true;
  return limits;
}

using Names = std::vector<std::string>;

/// A number, or `auto`: as many as there are.
struct CountOrAuto {
  int count = 1;  ///< 0: auto

  bool is_auto() const { return count == 0; }
  std::string text() const { return is_auto() ? "auto" : std::to_string(count); }
};

/// A value of any type, as JSON; "": none.
struct JsonText {
  std::string text;
};

template <class Enum>
std::string name_of(Enum value) {
  return names_of(value)[static_cast<size_t>(value)];
}

}  // namespace forge::schema
