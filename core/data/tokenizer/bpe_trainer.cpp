#include "core/data/tokenizer/bpe_trainer.h"

#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/data/tokenizer/pretokenizer.h"

namespace forge::data {
namespace {

using Counts = std::unordered_map<std::string, int64_t>;
using Documents = std::vector<std::string>;

constexpr size_t bytes_at_once = size_t{4} << 20;

/// The next documents of about that many bytes; none at the end.
Documents take_documents(const NextDocument& next_document) {
  Documents documents;
  std::string document;
  for (size_t bytes = 0; bytes < bytes_at_once && next_document(document);) {
    bytes += document.size();
    documents.push_back(std::move(document));
    document.clear();
  }
  return documents;
}

Counts count_in(const Documents& documents) {
  Counts counts;
  std::string key;
  for (const std::string& document : documents) {
    if (document.empty()) continue;
    const std::string text = " " + document;
    for (size_t position = 0; position < text.size();) {
      key.assign(text, position, piece_length(TextSplit::gpt2, text, position));
      ++counts[key];
      position += key.size();
    }
  }
  return counts;
}

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    const uint64_t key =
        uint64_t{static_cast<uint32_t>(pair.first)} << 32 | static_cast<uint32_t>(pair.second);
    return (key * 0x9e3779b97f4a7c15) >> 16;
  }
};

/// A distinct piece of the text as the symbols that it consists of so far.
struct Word {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

struct PairStatistics {
  int64_t count = 0;
  std::vector<uint32_t> words;  ///< indices of those it was ever seen in
};

struct Candidate {
  int64_t count;
  Pair pair;
  /// The heap's greatest: the largest count, then the smallest ids.
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

std::vector<Word> words_of(const NextDocument& next_document, const Vocabulary& vocabulary) {
  std::vector<Word> words;
  for (const auto& [text, count] : count_words(next_document)) {
    Word word;
    word.count = count;
    word.symbols.reserve(text.size());
    for (const char byte : text) {
      word.symbols.push_back(vocabulary.byte_ids[static_cast<uint8_t>(byte)]);
    }
    words.push_back(std::move(word));
  }
  return words;
}

/// Counts of all pairs, kept up to date while pairs are merged. Only words that hold the merged
/// pair are visited. A heap entry's count may be too large, never too small: a count that rises is
/// pushed anew, and one that fell is corrected when its entry comes to the top.
class PairCounts {
 public:
  explicit PairCounts(std::vector<Word> words) : words_(std::move(words)) {
    for (uint32_t w = 0; w < words_.size(); ++w) {
      const std::vector<int32_t>& symbols = words_[w].symbols;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        change({symbols[i], symbols[i + 1]}, words_[w].count, w);
      }
    }
    for (const auto& [pair, statistics] : pairs_) heap_.push({statistics.count, pair});
  }

  /// The most frequent pair, taken out; false when none is left.
  bool take_best(Pair& best) {
    while (!heap_.empty()) {
      const Candidate top = heap_.top();
      heap_.pop();
      const int64_t count = pairs_[top.pair].count;
      if (count == top.count && count > 0) {
        best = top.pair;
        return true;
      }
      if (count > 0) heap_.push({count, top.pair});
    }
    return false;
  }

  void merge(const Pair& pair, int32_t merged) {
    const std::vector<uint32_t> places = std::move(pairs_[pair].words);
    pairs_.erase(pair);
    changed_.clear();
    for (const uint32_t w : places) merge_in_word(w, pair, merged);
    for (const Pair& made : changed_) {
      if (const int64_t count = pairs_[made].count; count > 0) heap_.push({count, made});
    }
  }

 private:
  void change(const Pair& pair, int64_t difference, uint32_t word) {
    PairStatistics& statistics = pairs_[pair];
    statistics.count += difference;
    if (difference > 0 && (statistics.words.empty() || statistics.words.back() != word)) {
      statistics.words.push_back(word);
    }
  }

  void merge_in_word(uint32_t w, const Pair& pair, int32_t merged) {
    std::vector<int32_t>& symbols = words_[w].symbols;
    const int64_t count = words_[w].count;
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i) {
      const bool found =
          i + 1 < symbols.size() && symbols[i] == pair.first && symbols[i + 1] == pair.second;
      if (!found) {
        symbols[kept++] = symbols[i];
        continue;
      }
      if (kept > 0) {
        const int32_t left = symbols[kept - 1];
        change({left, pair.first}, -count, w);
        change({left, merged}, count, w);
        changed_.insert({left, merged});
      }
      if (i + 2 < symbols.size()) {
        const int32_t right = symbols[i + 2];
        change({pair.second, right}, -count, w);
        change({merged, right}, count, w);
        changed_.insert({merged, right});
      }
      symbols[kept++] = merged;
      ++i;
    }
    symbols.resize(kept);
  }

  std::vector<Word> words_;
  std::unordered_map<Pair, PairStatistics, PairHash> pairs_;
  std::unordered_set<Pair, PairHash> changed_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

Counts count_words(const NextDocument& next_document) {
  Counts counts;
  const auto next = [&]() -> std::optional<Documents> {
    Documents documents = take_documents(next_document);
    if (documents.empty()) return std::nullopt;
    return documents;
  };
  const auto take = [&](const Counts& more) {
    for (const auto& [word, number] : more) counts[word] += number;
    return true;
  };
  ordered_pipeline(next, count_in, take);
  return counts;
}

Tokenizer train_byte_level_bpe(const NextDocument& next_document,
                               int vocab_size,
                               const Progress& progress) {
  Vocabulary vocabulary = initial_vocabulary();
  if (vocab_size < vocabulary.size()) {
    throw Error(
        "a byte-level vocabulary of " + with_thousands(vocab_size) + " entries is too small",
        "it holds " + std::to_string(special_token_names().size()) +
            " special tokens and 256 bytes: tokenizer.vocab_size must be at least " +
            std::to_string(vocabulary.size()));
  }
  const std::string phase = "training the tokenizer";
  if (progress) progress(0, phase);
  PairCounts pairs(words_of(next_document, vocabulary));
  std::unordered_map<std::string, int32_t> id_of;
  for (int32_t id = 0; id < vocabulary.size(); ++id) id_of[vocabulary.tokens[id]] = id;
  std::unordered_set<Pair, PairHash> merged_before;
  while (vocabulary.size() < vocab_size) {
    Pair best;
    if (!pairs.take_best(best)) {
      throw Error("the text is too small for a vocabulary of " + with_thousands(vocab_size) +
                      ": every word is one token at " + with_thousands(vocabulary.size()),
                  "give more text, or set tokenizer.vocab_size to at most " +
                      std::to_string(vocabulary.size()));
    }
    // Two ways to build the same bytes share one token, as in Hugging Face's trainer.
    const std::string bytes = vocabulary.tokens[best.first] + vocabulary.tokens[best.second];
    const auto [place, is_new] = id_of.emplace(bytes, vocabulary.size());
    if (is_new) {
      vocabulary.tokens.push_back(bytes);
      vocabulary.special.push_back(0);
    }
    // A pair can come back when such a token is built the second way; its merge is known by then.
    if (merged_before.insert(best).second) {
      vocabulary.merges.push_back({best.first, best.second, place->second});
    }
    pairs.merge(best, place->second);
    if (progress && vocabulary.size() % 64 == 0) {
      progress(static_cast<double>(vocabulary.size()) / vocab_size, phase);
    }
  }
  return Tokenizer(std::move(vocabulary));
}

}  // namespace forge::data
