#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/data/stories/words.h"

namespace forge::data::stories {

/// A rule of the stories' grammar: its name and the texts that it may become, each as likely. In a
/// text
///     {name}       is what a variable, a word list or a rule of that name gives,
///     {name.form}  another form of it ("{thing.s}": kites, "{A.his}": her),
///     [a|b|]       is one of the alternatives, which may be empty.
/// The first letter of a sentence becomes a capital by itself.
struct RuleText {
  std::string_view name;
  std::vector<std::string_view> alternatives;
};

/// A variable keeps what it first stood for until the story ends; this is how a story refers back.
/// `source` is the word list or the rule that it draws from.
struct VariableText {
  std::string_view name;
  std::string_view source;
};

/// A grammar in a form that is quick to expand. Immutable after construction.
class Grammar {
 public:
  /// The views in its arguments must outlive it. Throws Error for an unknown name or form or an
  /// unbalanced bracket.
  Grammar(const std::vector<WordList>& lists,
          const std::vector<VariableText>& variables,
          const std::vector<RuleText>& rules);

  /// Appends one text of the rule `start` to `text`, chosen by `random`. Throws Error when a rule
  /// contains itself.
  void expand(std::string_view start, RandomStream& random, std::string& text) const;

 private:
  static constexpr uint16_t none = 0xffff;
  struct Word {
    std::vector<std::string> forms;
  };
  struct List {
    std::string_view name;
    WordKind kind;
    std::vector<Word> words;
  };
  struct Variable {
    std::string_view name;
    uint16_t list = none;  ///< or
    uint16_t rule = none;
  };
  enum class OpKind : uint8_t { literal, list, variable, choice };
  struct Op {
    OpKind kind = OpKind::literal;
    uint8_t form = 0;
    uint16_t index = 0;  ///< of a list, variable or choice
    std::string_view literal;
  };
  using Sequence = std::vector<Op>;
  using Choice = std::vector<Sequence>;  ///< a rule or a bracket
  class Compiler;
  class Expansion;

  std::vector<List> lists_;
  std::vector<Variable> variables_;
  std::vector<Choice> choices_;  ///< those of the rules first, in their order
  std::vector<std::string_view> rule_names_;
};

}  // namespace forge::data::stories
