#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"

/// The words of the generated stories, in their base forms and grouped by what a sentence may do
/// with them. The first quarter of a list is used more often than the rest.
namespace forge::data::stories {

enum class WordKind {
  noun,
  verb,  ///< or a verb phrase: its first word inflects
  adjective,
  plain,  ///< one form
  woman,  ///< a person's name or title, with the pronouns that go with it
  man,
};

struct WordList {
  std::string name;  ///< by which rules draw from it; two lists of one name are one list
  WordKind kind;
  std::vector<std::string> words;
};

/// A rule of the stories' grammar: its name and the texts that it may become, each as likely. In a
/// text
///     {name}       is what a variable, a word list or a rule of that name gives,
///     {name.form}  another form of it ("{thing.s}": kites, "{A.his}": her),
///     [a|b|]       is one of the alternatives, which may be empty.
/// The first letter of a sentence becomes a capital by itself.
struct RuleText {
  std::string name;
  std::vector<std::string> alternatives;
};

/// A variable keeps what it first stood for until the story ends; this is how a story refers back.
/// `source` is the word list or the rule that it draws from.
struct VariableText {
  std::string name;
  std::string source;
};

/// A grammar in a form that is quick to expand. Immutable after construction.
class Grammar {
 public:
  /// Throws Error for an unknown name or form or an unbalanced bracket.
  Grammar(const std::vector<WordList>& lists,
          const std::vector<VariableText>& variables,
          const std::vector<RuleText>& rules);

  /// Appends one text of the rule `start` to `text`, chosen by `random`. Throws Error when a rule
  /// contains itself. Adds to `nats`, if it is not null, −log of the probability of the choices
  /// that were made.
  void expand(std::string_view start,
              RandomStream& random,
              std::string& text,
              double* nats = nullptr) const;

 private:
  static constexpr uint16_t none = 0xffff;
  struct List {
    std::string name;
    WordKind kind;
    std::vector<std::vector<std::string>> words;  ///< the forms of each
  };
  struct Variable {
    std::string name;
    uint16_t list = none;  ///< or
    uint16_t rule = none;
  };
  enum class OpKind : uint8_t { literal, list, variable, choice };
  struct Op {
    OpKind kind = OpKind::literal;
    uint8_t form = 0;
    uint16_t index = 0;  ///< of a list, variable or choice
    std::string literal;
  };
  using Sequence = std::vector<Op>;
  using Choice = std::vector<Sequence>;  ///< a rule or a bracket
  class Compiler;
  class Expansion;

  std::vector<List> lists_;
  std::vector<Variable> variables_;
  std::vector<Choice> choices_;  ///< those of the rules first, in their order
  std::vector<std::string> rule_names_;
};

}  // namespace forge::data::stories
