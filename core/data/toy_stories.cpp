#include "core/data/toy_stories.h"

#include "core/base/random.h"
#include "core/data/stories/grammar.h"
#include "core/data/stories/rules.h"

namespace forge::data {
namespace {

using namespace stories;

constexpr int min_words = 60;
constexpr int max_words = 250;
constexpr int numbers_bits = 20;  // each story has 2^20 numbers of the stream to itself

template <class T>
std::vector<T> joined(std::initializer_list<std::vector<T>> parts) {
  std::vector<T> all;
  for (const std::vector<T>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// The plots are as likely as they are varied.
const RuleText& story_rule() {
  static const RuleText rule = {"story",
                                {"{plot_lost}",
                                 "{plot_lost}",
                                 "{plot_promise}",
                                 "{plot_promise}",
                                 "{plot_gift}",
                                 "{plot_owners}",
                                 "{plot_skill}",
                                 "{plot_skill}",
                                 "{plot_school}",
                                 "{plot_message}",
                                 "{plot_way}",
                                 "{plot_market}",
                                 "{plot_build}",
                                 "{plot_animal}",
                                 "{plot_animal}",
                                 "{plot_mystery}",
                                 "{plot_contest}",
                                 "{plot_garden}",
                                 "{plot_night}"}};
  return rule;
}

const Grammar& grammar() {
  static const Grammar shared(
      joined({people(), objects(), nature(), actions(), qualities(), settings()}),
      variables(),
      joined({common_rules(),
              scene_rules(),
              keeping_plots(),
              learning_plots(),
              doing_plots(),
              {story_rule()}}));
  return shared;
}

int count_words(const std::string& text) {
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

}  // namespace

std::string toy_story(uint64_t seed, Split split, uint64_t index) {
  static const uint64_t training_stream = stream_number("toy_stories training");
  static const uint64_t evaluation_stream = stream_number("toy_stories evaluation");
  RandomStream random(
      seed, split == Split::training ? training_stream : evaluation_stream, index << numbers_bits);
  std::string text;
  text.reserve(1600);
  int words = 0;
  do {
    text.clear();
    grammar().expand("story", random, text);
    remove_loose_spaces(text);
    words = count_words(text);
  } while (words < min_words || words > max_words);
  return text;
}

}  // namespace forge::data
