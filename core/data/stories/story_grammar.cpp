#include "core/data/stories/story_grammar.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/data/stories/english.h"

namespace forge::data::stories {
namespace {

using std::string;
using std::string_view;

const std::vector<string_view>& form_names(WordKind kind) {
  static const std::vector<string_view> noun = {"", "s", "a"};
  static const std::vector<string_view> verb = {"", "s", "ed", "ing", "en"};
  static const std::vector<string_view> adjective = {"", "er", "est", "a"};
  static const std::vector<string_view> plain = {"", "a"};
  static const std::vector<string_view> person = {
      "", "he", "him", "his", "himself", "girl", "woman", "sister", "daughter"};
  switch (kind) {
    case WordKind::noun: return noun;
    case WordKind::verb: return verb;
    case WordKind::adjective: return adjective;
    case WordKind::plain: return plain;
    default: return person;
  }
}

/// In the order of form_names.
std::vector<string> forms_of(string_view word, WordKind kind) {
  const string base(word);
  switch (kind) {
    case WordKind::noun: return {base, plural(word), with_article(word)};
    case WordKind::verb:
      return {
          base, third_person(word), past(word), present_participle(word), past_participle(word)};
    case WordKind::adjective:
      return {base, comparative(word), superlative(word), with_article(word)};
    case WordKind::plain: return {base, with_article(word)};
    case WordKind::woman:
      return {base, "she", "her", "her", "herself", "girl", "woman", "sister", "daughter"};
    case WordKind::man:
      return {base, "he", "him", "his", "himself", "boy", "man", "brother", "son"};
  }
  return {base};
}

/// Whether what is appended to `text` begins a sentence: after nothing, a full stop, a question or
/// exclamation mark and a space, or an opening quotation mark, unless that follows a comma.
/// After `?" ` the sentence may continue, too ("asked").
bool begins_sentence(const string& text) {
  const size_t n = text.size();
  if (n == 0 || text[n - 1] == '\n') return true;
  if (text[n - 1] == '"') {
    if (n >= 3 && text[n - 2] == ' ') return text[n - 3] != ',';
    return n == 1 || text[n - 2] == '\n';
  }
  if (n < 3 || text[n - 1] != ' ') return false;
  const char before = text[n - 2];
  if (before == '"') return text[n - 3] == '.';
  return before == '.' || before == '!' || before == '?';
}

void append(string_view addition, string& text) {
  if (addition.empty()) return;
  const bool capital = addition[0] >= 'a' && addition[0] <= 'z' && begins_sentence(text);
  text += addition;
  if (capital) text[text.size() - addition.size()] -= 'a' - 'A';
}

}  // namespace

/// Turns texts into ops.
class Grammar::Compiler {
 public:
  explicit Compiler(Grammar& grammar) : grammar_(grammar) {}

  void compile(const RuleText& rule, size_t index) {
    rule_ = rule.name;
    Choice choice;
    for (const string& alternative : rule.alternatives) {
      rest_ = alternative;
      choice.push_back(sequence());
      if (!rest_.empty()) fail("a bracket too many");
    }
    if (choice.empty()) fail("no alternative");
    grammar_.choices_[index] = std::move(choice);
  }

 private:
  [[noreturn]] void fail(const string& what) const {
    throw Error("the stories' rule '" + string(rule_) + "' has " + what);
  }

  Sequence sequence() {
    Sequence ops;
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ']') {
      if (rest_[0] == '{') {
        ops.push_back(slot());
      } else if (rest_[0] == '[') {
        ops.push_back(bracket());
      } else {
        const size_t end = std::min(rest_.find_first_of("{[|]"), rest_.size());
        ops.push_back({OpKind::literal, 0, 0, string(rest_.substr(0, end))});
        rest_.remove_prefix(end);
      }
    }
    return ops;
  }

  Op bracket() {
    Choice choice;
    do {
      rest_.remove_prefix(1);  // '[' or '|'
      choice.push_back(sequence());
    } while (!rest_.empty() && rest_[0] == '|');
    if (rest_.empty()) fail("an open bracket");
    rest_.remove_prefix(1);
    grammar_.choices_.push_back(std::move(choice));
    return {OpKind::choice, 0, static_cast<uint16_t>(grammar_.choices_.size() - 1), {}};
  }

  Op slot() {
    const size_t end = rest_.find('}');
    if (end == string_view::npos) fail("an open brace");
    const string_view inner = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    const size_t dot = inner.find('.');
    const string_view name = inner.substr(0, dot);
    const string_view form = dot == string_view::npos ? "" : inner.substr(dot + 1);
    const auto named = [&](const auto& item) { return item.name == name; };
    const auto& variables = grammar_.variables_;
    const auto variable = std::find_if(variables.begin(), variables.end(), named);
    if (variable != variables.end()) {
      return {OpKind::variable,
              form_index(variable->list, form),
              static_cast<uint16_t>(variable - variables.begin()),
              {}};
    }
    const auto list = std::find_if(grammar_.lists_.begin(), grammar_.lists_.end(), named);
    if (list != grammar_.lists_.end()) {
      const uint16_t index = static_cast<uint16_t>(list - grammar_.lists_.begin());
      return {OpKind::list, form_index(index, form), index, {}};
    }
    const auto& rules = grammar_.rule_names_;
    const auto rule = std::find(rules.begin(), rules.end(), name);
    if (rule == rules.end() || !form.empty()) fail("an unknown '{" + string(inner) + "}'");
    return {OpKind::choice, 0, static_cast<uint16_t>(rule - rules.begin()), {}};
  }

  uint8_t form_index(uint16_t list, string_view form) const {
    if (list == none && form.empty()) return 0;
    if (list != none) {
      const std::vector<string_view>& names = form_names(grammar_.lists_[list].kind);
      const auto found = std::find(names.begin(), names.end(), form);
      if (found != names.end()) return static_cast<uint8_t>(found - names.begin());
    }
    fail("an unknown form '" + string(form) + "'");
  }

  Grammar& grammar_;
  string_view rule_;
  string_view rest_;
};

Grammar::Grammar(const std::vector<WordList>& lists,
                 const std::vector<VariableText>& variables,
                 const std::vector<RuleText>& rules) {
  for (const WordList& source : lists) {
    const auto named = [&](const List& list) { return list.name == source.name; };
    auto list = std::find_if(lists_.begin(), lists_.end(), named);
    if (list == lists_.end()) list = lists_.insert(list, {source.name, source.kind, {}});
    for (const string& word : source.words) list->words.push_back(forms_of(word, source.kind));
  }
  for (const RuleText& rule : rules) rule_names_.push_back(rule.name);
  for (const VariableText& source : variables) {
    Variable variable{source.name, none, none};
    for (size_t i = 0; i < lists_.size(); ++i) {
      if (lists_[i].name == source.source) variable.list = static_cast<uint16_t>(i);
    }
    for (size_t i = 0; i < rules.size(); ++i) {
      if (rules[i].name == source.source) variable.rule = static_cast<uint16_t>(i);
    }
    if ((variable.list == none) == (variable.rule == none)) {
      throw Error("the stories' variable '" + string(source.name) + "' has no single source");
    }
    variables_.push_back(variable);
  }
  choices_.resize(rules.size());
  Compiler compiler(*this);
  for (size_t i = 0; i < rules.size(); ++i) compiler.compile(rules[i], i);
}

/// One story in the making: what its variables stand for, and which words were used last.
class Grammar::Expansion {
 public:
  Expansion(const Grammar& grammar, RandomStream& random, double* nats)
      : grammar_(grammar),
        random_(random),
        nats_(nats),
        bound_words_(grammar.variables_.size(), none),
        bound_texts_(grammar.variables_.size()),
        last_words_(grammar.lists_.size(), none) {}

  void expand(size_t choice_index, string& text, int depth = 0) {
    if (depth > max_depth) throw Error("a rule of the stories contains itself");
    const Choice& choice = grammar_.choices_[choice_index];
    const Sequence& sequence = choice[choice.size() == 1 ? 0 : below(choice.size())];
    if (nats_) *nats_ += std::log(static_cast<double>(choice.size()));
    for (const Op& op : sequence) {
      switch (op.kind) {
        case OpKind::literal: append(op.literal, text); break;
        case OpKind::list:
          append(grammar_.lists_[op.index].words[fresh_word(op.index)][op.form], text);
          break;
        case OpKind::variable: append(bound(op, depth), text); break;
        case OpKind::choice: expand(op.index, text, depth + 1); break;
      }
    }
  }

 private:
  static constexpr int max_depth = 40;

  uint32_t below(size_t bound) {
    return static_cast<uint32_t>((uint64_t{random_.next_u32()} * bound) >> 32);
  }

  /// Half of the time from the first quarter of the list, so that some words are common and some
  /// rare; never a word that a variable stands for, nor the one that was used last.
  uint16_t fresh_word(uint16_t list) {
    const size_t size = grammar_.lists_[list].words.size();
    const uint32_t bits = random_.next_u32();
    const size_t reach = bits & 1 ? (size + 3) / 4 : size;
    uint16_t word = static_cast<uint16_t>((uint64_t{bits >> 1} * reach) >> 31);
    for (size_t tries = 0; tries < size && is_taken(list, word); ++tries) {
      word = static_cast<uint16_t>(word + 1 < static_cast<int>(size) ? word + 1 : 0);
    }
    if (nats_) *nats_ -= std::log(probability_of(list, word));
    last_words_[list] = word;
    return word;
  }

  /// With which fresh_word gives this word now: its own share and those of the words in front of it
  /// that are taken.
  double probability_of(uint16_t list, uint16_t word) const {
    const size_t size = grammar_.lists_[list].words.size();
    const size_t common = (size + 3) / 4;
    double probability = 0;
    size_t begin = word;
    for (size_t i = 0; i < size; ++i) {
      if (i > 0 && !is_taken(list, static_cast<uint16_t>(begin))) break;
      probability += 0.5 / double(size) + (begin < common ? 0.5 / double(common) : 0);
      begin = begin > 0 ? begin - 1 : size - 1;
    }
    return probability;
  }

  bool is_taken(uint16_t list, uint16_t word) const {
    if (last_words_[list] == word) return true;
    for (size_t v = 0; v < bound_words_.size(); ++v) {
      if (bound_words_[v] == word && grammar_.variables_[v].list == list) return true;
    }
    return false;
  }

  string_view bound(const Op& op, int depth) {
    const Variable& variable = grammar_.variables_[op.index];
    if (variable.list != none) {
      uint16_t& word = bound_words_[op.index];
      if (word == none) word = fresh_word(variable.list);
      return grammar_.lists_[variable.list].words[word][op.form];
    }
    string& text = bound_texts_[op.index];
    if (text.empty()) {
      text = " ";  // left out below: the first letter must not begin a sentence
      expand(variable.rule, text, depth + 1);
    }
    return string_view(text).substr(1);
  }

  const Grammar& grammar_;
  RandomStream& random_;
  double* nats_;  ///< null: nobody asks
  std::vector<uint16_t> bound_words_;
  std::vector<string> bound_texts_;
  std::vector<uint16_t> last_words_;
};

void Grammar::expand(string_view start, RandomStream& random, string& text, double* nats) const {
  const auto rule = std::find(rule_names_.begin(), rule_names_.end(), start);
  if (rule == rule_names_.end()) throw Error("the stories have no rule '" + string(start) + "'");
  Expansion(*this, random, nats).expand(static_cast<size_t>(rule - rule_names_.begin()), text);
}

}  // namespace forge::data::stories
