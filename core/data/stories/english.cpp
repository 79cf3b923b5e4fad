#include "core/data/stories/english.h"

#include <map>
#include <vector>

#include "core/base/text.h"
#include "core/data/sections.h"

namespace forge::data::stories {
namespace {

using std::string;
using std::string_view;

/// Forms of the irregular words of a part of speech by their base form: a noun's plural, or a
/// verb's past and participle.
using IrregularForms = std::map<string, std::vector<string>, std::less<>>;

const IrregularForms& irregular(string_view part) {
  static const std::map<string, IrregularForms, std::less<>> all = [] {
    std::map<string, IrregularForms, std::less<>> read;
    for (const Section& section : read_sections(irregular_words_text())) {
      for (const string& item : section.items) {
        std::vector<string> forms = split(item, ' ');
        const string base = forms.front();
        forms.erase(forms.begin());
        read[section.title][base] = std::move(forms);
      }
    }
    return read;
  }();
  return all.find(part)->second;
}

bool is_vowel(char letter) { return string_view("aeiou").find(letter) != string_view::npos; }

bool ends_in(string_view word, string_view ending) {
  return word.size() >= ending.size() && word.substr(word.size() - ending.size()) == ending;
}

bool ends_in_consonant_y(string_view word) {
  return word.size() > 1 && word.back() == 'y' && !is_vowel(word[word.size() - 2]);
}

bool hisses(string_view word) {
  return ends_in(word, "s") || ends_in(word, "x") || ends_in(word, "z") || ends_in(word, "ch") ||
         ends_in(word, "sh");
}

/// How many runs of vowels there are; y is one unless a vowel follows it ("loy-al").
int vowel_groups(string_view word) {
  int groups = 0;
  bool after_vowel = false;
  for (size_t i = 0; i < word.size(); ++i) {
    const bool before_vowel = i + 1 < word.size() && is_vowel(word[i + 1]);
    const bool vowel = is_vowel(word[i]) || (word[i] == 'y' && i > 0 && !before_vowel);
    if (vowel && !after_vowel) ++groups;
    after_vowel = vowel;
  }
  return groups;
}

/// Whether the last consonant doubles before -ed, -ing and -er: one stressed syllable that ends in
/// consonant, vowel, consonant ("stop", "begin", but not "open").
bool doubles(string_view word) {
  for (const string_view stressed : {"begin", "forget", "admit", "regret"}) {
    if (word == stressed) return true;
  }
  const size_t n = word.size();
  if (n < 3 || vowel_groups(word) != 1) return false;
  const char last = word[n - 1];
  if (is_vowel(last) || last == 'w' || last == 'x' || last == 'y') return false;
  if (!is_vowel(word[n - 2])) return false;
  const bool after_qu = n > 3 && word[n - 3] == 'u' && word[n - 4] == 'q';
  return !is_vowel(word[n - 3]) || after_qu;
}

string with_s(string_view word) {
  if (ends_in_consonant_y(word)) return string(word.substr(0, word.size() - 1)) + "ies";
  return string(word) + (hisses(word) ? "es" : "s");
}

/// Stem for an ending that begins with e: "bake" -> "bak", "carry" -> "carri", "stop" -> "stopp".
string stem_before_e(string_view word) {
  if (word.back() == 'e') return string(word.substr(0, word.size() - 1));
  if (ends_in_consonant_y(word)) return string(word.substr(0, word.size() - 1)) + "i";
  return string(word) + (doubles(word) ? string(1, word.back()) : "");
}

/// Form `index` of an irregular verb: 0 is the past, 1 the participle. Regular ones end in -ed.
string past_form(string_view verb, size_t index) {
  const IrregularForms& verbs = irregular("verbs");
  const auto found = verbs.find(verb);
  return found == verbs.end() ? stem_before_e(verb) + "ed" : found->second[index];
}

/// The phrase with its first word inflected.
template <class Inflect>
string in_first_word(string_view phrase, Inflect inflect) {
  const size_t end = phrase.find(' ');
  if (end == string_view::npos) return inflect(phrase);
  return inflect(phrase.substr(0, end)) + string(phrase.substr(end));
}

bool takes_more(string_view adjective) {
  return vowel_groups(adjective) > (ends_in(adjective, "e") ? 2 : 1) &&
         !ends_in_consonant_y(adjective) && adjective != "quiet" && adjective != "narrow" &&
         adjective != "clever";
}

}  // namespace

string plural(string_view noun) {
  if (const size_t of = noun.find(" of "); of != string_view::npos) {
    return plural(noun.substr(0, of)) + string(noun.substr(of));
  }
  const size_t space = noun.rfind(' ');
  const size_t begin = space == string_view::npos ? 0 : space + 1;
  const string_view word = noun.substr(begin);
  const IrregularForms& nouns = irregular("nouns");
  const auto found = nouns.find(word);
  return string(noun.substr(0, begin)) + (found == nouns.end() ? with_s(word) : found->second[0]);
}

string third_person(string_view verb) {
  return in_first_word(verb, [](string_view word) {
    if (word == "have") return string("has");
    if (word == "go" || word == "do") return string(word) + "es";
    return with_s(word);
  });
}

string past(string_view verb) {
  return in_first_word(verb, [](string_view word) { return past_form(word, 0); });
}

string past_participle(string_view verb) {
  return in_first_word(verb, [](string_view word) { return past_form(word, 1); });
}

string present_participle(string_view verb) {
  return in_first_word(verb, [](string_view word) {
    if (ends_in(word, "ie")) return string(word.substr(0, word.size() - 2)) + "ying";
    const bool silent_e = ends_in(word, "e") && !ends_in(word, "ee") && !ends_in(word, "oe") &&
                          !ends_in(word, "ye") && word != "be";
    if (silent_e) return string(word.substr(0, word.size() - 1)) + "ing";
    return string(word) + (doubles(word) ? string(1, word.back()) : "") + "ing";
  });
}

string comparative(string_view adjective) {
  if (adjective == "good") return "better";
  if (adjective == "bad") return "worse";
  if (takes_more(adjective)) return "more " + string(adjective);
  return stem_before_e(adjective) + "er";
}

string superlative(string_view adjective) {
  if (adjective == "good") return "best";
  if (adjective == "bad") return "worst";
  if (takes_more(adjective)) return "most " + string(adjective);
  return stem_before_e(adjective) + "est";
}

string with_article(string_view phrase) {
  for (const string_view silent_h : {"hour", "honest"}) {
    if (phrase.substr(0, silent_h.size()) == silent_h) return "an " + string(phrase);
  }
  for (const string_view consonant : {"use", "uni", "ukulele", "one"}) {
    if (phrase.substr(0, consonant.size()) == consonant) return "a " + string(phrase);
  }
  return (is_vowel(phrase[0]) ? "an " : "a ") + string(phrase);
}

}  // namespace forge::data::stories
