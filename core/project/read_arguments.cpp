#include "core/project/template_arguments.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::project {
namespace {

using jinja::Variable;
using jinja::Variables;
using Type = TemplateArgument::Type;
using Action = TemplateArgument::Action;

/// A number's text as from_chars takes it: Python allows blanks around, a plus sign and single
/// underscores between digits.
std::optional<std::string> plain_number(const std::string& word) {
  std::string text(trim(word));
  if (starts_with(text, "+") && !starts_with(text, "+-")) text.erase(0, 1);
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
      continue;
    }
    const auto is_digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '9';
    };
    if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return std::nullopt;
  }
  return plain;
}

template <typename Number>
std::optional<Number> number_of(const std::string& word) {
  const auto text = plain_number(word);
  if (!text || text->empty()) return std::nullopt;
  Number number{};
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

std::optional<bool> boolean_of(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  static const std::set<std::string> yes = {"true", "1", "yes", "on"};
  static const std::set<std::string> no = {"false", "0", "no", "off"};
  if (yes.count(word) + no.count(word) == 0) return std::nullopt;
  return yes.count(word) == 1;
}

/// The value of a word, or nothing where it is of another type.
std::optional<Variable> value_of(const std::string& word, Type type, const std::string& home) {
  using Kind = Variable::Kind;
  Variable value;
  const auto store = [&](Kind kind, auto Variable::*member, const auto& parsed) {
    value.kind = kind;
    if (parsed) value.*member = *parsed;
    return parsed ? std::optional(value) : std::nullopt;
  };
  switch (type) {
    case Type::integer: return store(Kind::integer, &Variable::integer, number_of<int64_t>(word));
    case Type::real: return store(Kind::real, &Variable::real, number_of<double>(word));
    case Type::boolean: return store(Kind::boolean, &Variable::boolean, boolean_of(word));
    default: break;
  }
  const bool at_home = type == Type::path && (word == "~" || starts_with(word, "~/"));
  return store(Kind::string,
               &Variable::string,
               std::optional(at_home && !home.empty() ? home + word.substr(1) : word));
}

const char* type_name(Type type) {
  switch (type) {
    case Type::integer: return "an integer";
    case Type::real: return "a number";
    case Type::boolean: return "true or false";
    default: return "a text";
  }
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !number_of<double>(word);
}

bool equal(const Variable& a, const Variable& b) {
  const auto number = [](const Variable& v) -> std::optional<double> {
    if (v.kind == Variable::Kind::integer) return static_cast<double>(v.integer);
    return v.kind == Variable::Kind::real ? std::optional(v.real) : std::nullopt;
  };
  if (const auto left = number(a), right = number(b); left && right) return *left == *right;
  return a.kind == b.kind && text_of(a) == text_of(b);
}

class ArgumentParser {
 public:
  ArgumentParser(const std::vector<TemplateArgument>& declared,
                 const std::vector<std::string>& words,
                 const ArgumentContext& reader)
      : declared_(declared), words_(words), reader_(reader) {}

  Variables read() {
    while (at_ < words_.size()) {
      const std::string word = words_[at_++];
      if (!is_option(word)) {
        throw Error("'" + word + "' belongs to no argument of the config '" + reader_.config + "'",
                    "names of configs stand before the arguments; " + what_it_takes());
      }
      const size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      std::vector<std::string> values;
      if (equals != std::string::npos) {
        values.push_back(word.substr(equals + 1));
      } else {
        while (at_ < words_.size() && !is_option(words_[at_])) values.push_back(words_[at_++]);
      }
      store(find(name, values), name, values);
    }
    return std::move(variables_);
  }

 private:
  const TemplateArgument& find(const std::string& name,
                               const std::vector<std::string>& values) const {
    std::vector<std::string> known = reader_.command_options;
    for (const TemplateArgument& argument : declared_) {
      const auto& names = argument.names;
      if (std::find(names.begin(), names.end(), name) != names.end()) return argument;
      known.insert(known.end(), names.begin(), names.end());
    }
    std::string hint = name == "--set"
                           ? "this command takes no --set; forge run, show, model and bench do"
                           : did_you_mean(name, known);
    // "--max-steps" is train.max_steps, and so is "--steps".
    for (const char* beginning : {".", ".max_"}) {
      for (const std::string& key : reader_.keys) {
        const bool is_key = ends_with("." + key, beginning + underscored(name));
        if (is_key && hint.empty())
          hint = "a key of the config is set with --set " + key + "=" +
                 (values.empty() ? "VALUE" : shell_quoted(values[0]));
      }
    }
    if (!declared_.empty() || hint.empty()) hint += (hint.empty() ? "" : "\n") + what_it_takes();
    throw Error("the config '" + reader_.config + "' takes no argument '" + name + "'", hint);
  }

  /// "--max-steps" as a key of the config is named.
  static std::string underscored(const std::string& option) {
    std::string name = option.substr(option.find_first_not_of('-'));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
  }

  std::string what_it_takes() const {
    if (declared_.empty()) return "the config takes no arguments: it has no target dynamic_args";
    return "the config takes " + join(texts_of(declared_, usage_of), "; ");
  }

  [[noreturn]] void fail(const TemplateArgument& argument, const std::string& message) const {
    throw Error(message + " (config '" + reader_.config + "')", "it is " + usage_of(argument));
  }

  void store(const TemplateArgument& argument,
             const std::string& name,
             const std::vector<std::string>& words) {
    const bool is_new = given_.insert(argument.variable).second;
    if (!is_new && argument.action != Action::append) {
      fail(argument, "'" + name + "' is given twice");
    }
    if (words.size() < argument.min_values) fail(argument, "'" + name + "' lacks a value");
    if (words.size() > argument.max_values) {
      fail(argument,
           "'" + name + "' is followed by '" + words[argument.max_values] + "', which is too much");
    }
    if (words.empty() && !argument.is_list) {
      if (argument.constant.kind != Variable::Kind::none) {
        variables_[argument.variable] = argument.constant;
      }
      return;
    }
    Variable& variable = variables_[argument.variable];
    if (argument.is_list) variable.kind = Variable::Kind::list;
    for (const std::string& word : words) {
      Variable value = convert(argument, name, word);
      if (argument.is_list) {
        variable.items.push_back(std::move(value));
      } else {
        variable = std::move(value);
      }
    }
  }

  Variable convert(const TemplateArgument& argument,
                   const std::string& name,
                   const std::string& word) const {
    const auto value = value_of(word, argument.type, reader_.home_directory);
    if (!value) {
      fail(argument, "'" + name + "' takes " + type_name(argument.type) + ", not '" + word + "'");
    }
    const bool is_choice =
        argument.choices.empty() ||
        std::any_of(argument.choices.begin(), argument.choices.end(), [&](const Variable& choice) {
          return equal(choice, *value);
        });
    if (!is_choice) fail(argument, "'" + word + "' is no choice of '" + name + "'");
    return *value;
  }

  const std::vector<TemplateArgument>& declared_;
  const std::vector<std::string>& words_;
  const ArgumentContext& reader_;
  size_t at_ = 0;
  std::set<std::string> given_;
  Variables variables_;
};

}  // namespace

Variables parse_template_arguments(const std::vector<TemplateArgument>& declared,
                                   const std::vector<std::string>& words,
                                   const ArgumentContext& reader) {
  return ArgumentParser(declared, words, reader).read();
}

}  // namespace forge::project
