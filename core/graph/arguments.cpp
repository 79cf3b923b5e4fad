#include "core/graph/arguments.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/templating/unicode.h"

namespace forge::graph {
namespace {

/// The digits of `argN` without leading zeros, or nothing for another name.
std::optional<std::string> position_of(const std::string& name) {
  constexpr std::string_view prefix = "arg";
  if (!starts_with(name, prefix) || name.size() == prefix.size()) return std::nullopt;
  const std::string digits = name.substr(prefix.size());
  if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size() - 1));
}

std::vector<yaml::NodePtr> characters(const yaml::Node& scalar) {
  std::vector<yaml::NodePtr> found;
  for (size_t at = 0; at < scalar.text.size();) {
    auto character = std::make_shared<yaml::Node>();
    character->kind = yaml::Node::Kind::string;
    character->origin = scalar.origin;
    templating::append_code_point(character->text, templating::next_code_point(scalar.text, at));
    found.push_back(std::move(character));
  }
  return found;
}

/// Whether `args` and `kwargs` are all that the mapping gives.
bool is_explicit(const yaml::Node& mapping) {
  const auto given = [&](const char* key) {
    const yaml::Entry* entry = mapping.find_entry(key);
    return entry && entry->key_is_string &&
           (!entry->value->is_null() || !entry->value->tag.empty());
  };
  const size_t count = (given("args") ? 1U : 0U) + (given("kwargs") ? 1U : 0U);
  return count > 0 && count == mapping.entries.size();
}

std::vector<yaml::Entry> with_names(const yaml::Node& mapping) {
  for (const yaml::Entry& entry : mapping.entries) {
    if (!entry.key_is_string) {
      throw Error("the name of an argument is no string: '" + entry.key + "'", entry.key_origin);
    }
  }
  return mapping.entries;
}

Arguments read_explicit(const yaml::Node& mapping) {
  Arguments arguments;
  for (const yaml::Entry& entry : mapping.entries) {
    const yaml::Node& value = *entry.value;
    const bool is_list = entry.key == "args";
    if (!value.tag.empty() || (is_list ? !value.is_sequence() : !value.is_mapping())) {
      const std::string what = value.tag.empty() ? describe_kind(value) : "'" + value.tag + "'";
      throw Error("'" + entry.key + "' is " + what,
                  value.origin,
                  is_list ? "it takes a sequence of arguments" : "it takes a mapping of arguments");
    }
    if (is_list) {
      arguments.positional = value.items;
    } else {
      arguments.named = with_names(value);
    }
  }
  return arguments;
}

Arguments read_named(const yaml::Node& mapping) {
  struct Numbered {
    std::string number;
    yaml::NodePtr value;
  };
  std::vector<Numbered> numbered;
  Arguments arguments;
  for (yaml::Entry& entry : with_names(mapping)) {
    if (const auto number = position_of(entry.key)) {
      numbered.push_back({*number, entry.value});
    } else {
      arguments.named.push_back(std::move(entry));
    }
  }
  std::stable_sort(numbered.begin(), numbered.end(), [](const Numbered& a, const Numbered& b) {
    return std::make_pair(a.number.size(), a.number) < std::make_pair(b.number.size(), b.number);
  });
  for (Numbered& argument : numbered) arguments.positional.push_back(std::move(argument.value));
  return arguments;
}

}  // namespace

Arguments read_arguments(const yaml::Node& call) {
  if (call.is_sequence()) return {call.items, {}};
  if (call.is_scalar()) return {characters(call), {}};
  return is_explicit(call) ? read_explicit(call) : read_named(call);
}

}  // namespace forge::graph
