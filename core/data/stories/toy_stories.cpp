#include "core/data/stories/toy_stories.h"

#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/data/sections.h"
#include "core/data/stories/story_grammar.h"

namespace forge::data {
namespace {

using namespace stories;

constexpr int min_words = 60;
constexpr int max_words = 250;
constexpr int numbers_bits = 20;  // each story has 2^20 numbers of the stream to itself

/// `title` of a list of words.txt: "thing noun".
WordList word_list(const Section& section) {
  static const std::map<std::string, WordKind> kinds = {{"noun", WordKind::noun},
                                                        {"verb", WordKind::verb},
                                                        {"adjective", WordKind::adjective},
                                                        {"plain", WordKind::plain},
                                                        {"woman", WordKind::woman},
                                                        {"man", WordKind::man}};
  const size_t space = section.title.find(' ');
  const auto kind = kinds.find(section.title.substr(space + 1));
  if (kind == kinds.end()) throw Error("the words [" + section.title + "] are of no kind");
  return {section.title.substr(0, space), kind->second, section.items};
}

/// With a line's end for each "\\n".
std::string unescaped(std::string text) {
  for (size_t at; (at = text.find("\\n")) != std::string::npos;) text.replace(at, 2, "\n");
  return text;
}

Grammar read_grammar() {
  std::vector<WordList> lists;
  for (const Section& section : read_sections(story_words_text()))
    lists.push_back(word_list(section));
  std::vector<VariableText> variables;
  std::vector<RuleText> rules;
  for (const Section& section : read_sections(story_rules_text())) {
    if (section.title != "variables") {
      RuleText& rule = rules.emplace_back(RuleText{section.title, {}});
      for (const std::string& item : section.items) rule.alternatives.push_back(unescaped(item));
      continue;
    }
    for (const std::string& item : section.items) {
      const size_t equals = item.find(" = ");
      variables.push_back({item.substr(0, equals), item.substr(equals + 3)});
    }
  }
  return Grammar(lists, variables, rules);
}

const Grammar& grammar() {
  static const Grammar shared = read_grammar();
  return shared;
}

int word_count(const std::string& text) {
  int words = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool gap = text[i] == ' ' || text[i] == '\n';
    const bool begins = !gap && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n');
    words += begins;
  }
  return words;
}

/// Parts that may be empty leave two spaces, or one at the end of a paragraph.
void remove_loose_spaces(std::string& text) {
  size_t kept = 0;
  for (const char letter : text) {
    const char before = kept > 0 ? text[kept - 1] : '\n';
    if (letter == ' ' && (before == ' ' || before == '\n')) continue;
    if (letter == '\n' && before == ' ') --kept;
    text[kept++] = letter;
  }
  while (kept > 0 && (text[kept - 1] == ' ' || text[kept - 1] == '\n')) --kept;
  text.resize(kept);
}

/// A story and how it came about.
struct Derivation {
  std::string text;
  double nats = 0;  ///< −log of the probability of its choices
  int tries = 0;    ///< texts that were made until one had the right length
};

Derivation derive(uint64_t seed, Split split, uint64_t index, bool with_nats) {
  static const uint64_t training_stream = stream_number("toy_stories training");
  static const uint64_t evaluation_stream = stream_number("toy_stories evaluation");
  RandomStream random(
      seed, split == Split::training ? training_stream : evaluation_stream, index << numbers_bits);
  Derivation made;
  made.text.reserve(1600);
  int words = 0;
  do {
    made.text.clear();
    made.nats = 0;
    ++made.tries;
    grammar().expand("story", random, made.text, with_nats ? &made.nats : nullptr);
    remove_loose_spaces(made.text);
    words = word_count(made.text);
  } while (words < min_words || words > max_words);
  return made;
}

}  // namespace

std::string toy_story(uint64_t seed, Split split, uint64_t index) {
  return derive(seed, split, index, false).text;
}

double toy_stories_nats(uint64_t seed, Split split, uint64_t count) {
  double nats = 0;
  uint64_t tries = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const Derivation made = derive(seed, split, i, true);
    nats += made.nats;
    tries += static_cast<uint64_t>(made.tries);
  }
  // A text of the wrong length is no story, which makes each story more probable by as much.
  if (count > 0) nats -= double(count) * std::log(double(tries) / double(count));
  return nats;
}

}  // namespace forge::data
