#include "core/data/toy_stories.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>

#include "core/base/hash.h"
#include "tests/support/catch.h"

namespace forge::data {
namespace {

int count_words(const std::string& text) {
  int words = 0;
  bool inside = false;
  for (const char letter : text) {
    const bool gap = letter == ' ' || letter == '\n';
    words += !gap && !inside;
    inside = !gap;
  }
  return words;
}

TEST_CASE("stories are the same bytes for all time") {
  Hasher hasher;
  for (uint64_t i = 0; i < 50; ++i) hasher.update(toy_story(1, Split::training, i));
  for (uint64_t i = 0; i < 50; ++i) hasher.update(toy_story(1, Split::evaluation, i));
  // Whoever changes this raises toy_stories_version: caches and runs depend on it.
  REQUIRE(toy_stories_version == 1);
  REQUIRE(hasher.hex() == "8a868245bc482409364f9ec6dcf5314b");
}

TEST_CASE("stories have 60 to 250 words of clean text") {
  double words = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    const std::string story = toy_story(3, Split::training, i);
    INFO(story);
    const int count = count_words(story);
    REQUIRE(count >= 60);
    REQUIRE(count <= 250);
    words += count;
    REQUIRE(story.find_first_of("{}[]|") == std::string::npos);
    REQUIRE(story.find("  ") == std::string::npos);
    REQUIRE(story.find(" \n") == std::string::npos);
    REQUIRE(story.find("\n\n\n") == std::string::npos);
    REQUIRE(std::isupper(static_cast<unsigned char>(story[0])));
    REQUIRE(std::string(".!\"").find(story.back()) != std::string::npos);
    REQUIRE(std::all_of(story.begin(), story.end(), [](char letter) {
      return letter == '\n' || (letter >= ' ' && letter <= '~');
    }));
  }
  REQUIRE(words / 2000 > 120);
}

TEST_CASE("stories use at least 3000 word forms and more than in passing") {
  std::map<std::string, int> forms;
  for (uint64_t i = 0; i < 6000; ++i) {
    std::string word;
    for (const char letter : toy_story(1, Split::training, i) + " ") {
      if (std::isalpha(static_cast<unsigned char>(letter))) {
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      } else if (!word.empty()) {
        ++forms[word];
        word.clear();
      }
    }
  }
  int used = 0;
  for (const auto& [word, count] : forms) used += count >= 5;
  REQUIRE(used >= 3000);
}

TEST_CASE("no evaluation story is a training story and no story comes twice") {
  std::set<std::string> training;
  for (uint64_t i = 0; i < 5000; ++i) training.insert(toy_story(1, Split::training, i));
  REQUIRE(training.size() == 5000);
  for (uint64_t i = 0; i < 1000; ++i)
    REQUIRE(training.count(toy_story(1, Split::evaluation, i)) == 0);
  REQUIRE(toy_story(1, Split::training, 5) != toy_story(2, Split::training, 5));
}

TEST_CASE("facts come back: where the thing was put is told twice") {
  int told_again = 0;
  int stories = 0;
  for (uint64_t i = 0; i < 500; ++i) {
    const std::string story = toy_story(1, Split::training, i);
    const size_t question = story.find("\"Where was it?\" asked");
    if (question == std::string::npos) continue;
    ++stories;
    const size_t answer = story.find(" \"", question) + 2;
    std::string place = story.substr(answer, story.find(",\"", answer) - answer);
    place[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(place[0])));
    told_again += story.find(place) < question;
  }
  REQUIRE(stories > 5);
  REQUIRE(told_again == stories);
}

TEST_CASE("a story far along a stream is had at once") {
  REQUIRE(toy_story(1, Split::training, (uint64_t{1} << 40) - 1) !=
          toy_story(1, Split::training, 0));
}

}  // namespace
}  // namespace forge::data
