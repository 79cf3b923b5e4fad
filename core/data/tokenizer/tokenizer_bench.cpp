// forge-bench-tokenizer: training on 100 MB and encoding on one core, one JSON line each. The text
// is generated stories, and made-up words whose frequencies follow Zipf's law as those of a large
// corpus do: stories have too few words for a vocabulary of 32k entries. Files given as arguments
// are encoded too.

#include <cmath>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/random.h"
#include "core/data/stories/toy_stories.h"
#include "core/data/tokenizer/bpe_trainer.h"

namespace forge::data {
namespace {

constexpr double megabyte = 1e6;
constexpr double word_forms = 500000;

/// The same word for the same rank, longer the rarer it is.
std::string word_of_rank(uint64_t rank) {
  static const std::vector<std::string> syllables = {
      "ta",   "re",  "in",   "on",  "es",  "mi",  "lo",   "sha", "ter", "ing",
      "ment", "qu",  "al",   "ver", "dis", "con", "ble",  "ny",  "ous", "ph",
      "ar",   "est", "ough", "st",  "gra", "pe",  "tion", "ur"};
  RandomStream random(rank, 3);
  const int count = 1 + static_cast<int>(std::log10(static_cast<double>(rank) + 1.0));
  std::string word;
  for (int i = 0; i < count; ++i) word += syllables[random.below(syllables.size())];
  return word;
}

/// Sentences of about a kilobyte a document.
std::string zipf_document(uint64_t index) {
  RandomStream random(index, 7);
  std::string text;
  while (text.size() < 1000) {
    const double share = static_cast<double>(random.below(1u << 30)) / (1u << 30);
    const auto rank = static_cast<uint64_t>(std::pow(word_forms, share));
    if (!text.empty()) text += random.below(12) == 0 ? ". " : " ";
    text += word_of_rank(rank);
  }
  return text + ".\n";
}

std::vector<std::string> documents(double bytes, std::string (*make)(uint64_t)) {
  std::vector<std::string> made;
  double size = 0;
  for (uint64_t i = 0; size < bytes; ++i) {
    made.push_back(make(i));
    size += static_cast<double>(made.back().size());
  }
  return made;
}

void print(const std::string& name, double value, const std::string& unit) {
  std::cout << json_text(
                   nlohmann::json{{"name", "tokenizer." + name}, {"value", value}, {"unit", unit}})
            << std::endl;
}

Tokenizer train(const std::vector<std::string>& texts, int vocab_size) {
  return train_byte_level_bpe(
      [&texts, next = size_t{0}](std::string& document) mutable {
        if (next == texts.size()) return false;
        document = texts[next++];
        return true;
      },
      vocab_size,
      {});
}

/// On this thread's own time, so that other programs disturb less.
void bench_encoding(const std::string& name,
                    const Tokenizer& tokenizer,
                    const std::vector<std::string>& texts) {
  double bytes = 0;
  for (const std::string& text : texts) bytes += static_cast<double>(text.size());
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<int32_t> ids;
    const std::clock_t began = std::clock();
    for (const std::string& text : texts) {
      ids.clear();
      tokenizer.append_document(text, ids);
    }
    const double seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    best = std::max(best, bytes / megabyte / seconds);
  }
  print("encode." + name, best, "MB/s");
}

void run(const std::vector<std::string>& files) {
  const auto story = [](uint64_t i) { return toy_story(1, Split::training, i); };
  const std::vector<std::string> stories = documents(10 * megabyte, story);
  const std::vector<std::string> words = documents(100 * megabyte, zipf_document);
  const double began = steady_seconds();
  const Tokenizer large = train(words, 32000);
  print("train_32k_on_100_MB", steady_seconds() - began, "s");
  const Tokenizer small = train({stories.begin(), stories.begin() + 2000}, 2000);
  bench_encoding("stories_2k", small, stories);
  bench_encoding("words_32k", large, {words.begin(), words.begin() + 10000});
  for (const std::string& file : files) {
    const std::string text = read_file(file);
    bench_encoding(file + ".2k", train({text}, 2000), {text});
  }
}

}  // namespace
}  // namespace forge::data

int main(int argc, char** argv) { forge::data::run({argv + 1, argv + argc}); }
