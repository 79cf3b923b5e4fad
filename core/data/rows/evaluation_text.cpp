#include "core/data/rows/evaluation_text.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/parallel.h"
#include "core/data/rows/prepare.h"
#include "core/data/rows/token_file.h"
#include "core/data/stories/toy_stories.h"
#include "core/data/tokenizer/tokenizer.h"
#include "core/data/tokenizer/tokenizer_json.h"

namespace forge::data {
namespace {

/// What a token is to a sentence.
struct TokenRole {
  bool ends = false;      ///< has a '.', '!' or '?'
  bool is_break = false;  ///< a special token, or white space with a line's end: in no sentence
  bool has_word = false;  ///< has a letter, a digit or a byte beyond ASCII
};

TokenRole role_of(const std::string& text) {
  TokenRole role;
  bool is_space = !text.empty(), has_newline = false;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    role.ends = role.ends || letter == '.' || letter == '!' || letter == '?';
    role.has_word = role.has_word || byte >= 0x80 || std::isalnum(byte);
    is_space = is_space && std::isspace(byte);
    has_newline = has_newline || letter == '\n';
  }
  role.is_break = text.empty() || (is_space && has_newline);  // of a special token there is no text
  return role;
}

std::vector<TokenRole> roles_of(const Tokenizer& tokenizer) {
  std::vector<TokenRole> roles;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    roles.push_back(role_of(tokenizer.decode_continuation({id})));
  return roles;
}

/// The documents that the rows of a file use, each as far as they use it.
class UsedDocuments {
 public:
  UsedDocuments(const PreparedRows& rows, int seq_len, bool padded)
      : file_(rows.tokens), seq_len_(seq_len), padded_(padded) {
    end_ = std::min(file_.size(), rows.rows * seq_len + 1);
    count_ = padded ? std::min(rows.rows, file_.documents()) : documents_before(end_);
  }

  const TokenFile& file() const { return file_; }
  int64_t count() const { return count_; }
  TokenSpan span(int64_t number) const {
    TokenSpan span = file_.document(number);
    span.count = std::min<int64_t>(span.count, padded_ ? seq_len_ : end_ - span.first);
    return span;
  }

 private:
  /// How many documents begin in front of id `end`.
  int64_t documents_before(int64_t end) const {
    int64_t low = 0, high = file_.documents();
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (file_.document(middle).first < end) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  TokenFile file_;
  int seq_len_;
  bool padded_;
  int64_t end_ = 0;  ///< of the ids that packed rows use
  int64_t count_ = 0;
};

constexpr int64_t ids_at_once = 1 << 16;

/// Calls `take` with a 64-bit hash of the ids of each sentence of a document.
template <class Take>
void for_each_sentence(const TokenFile& file,
                       TokenSpan document,
                       const std::vector<TokenRole>& roles,
                       const Take& take) {
  constexpr uint64_t prime = 0x9e3779b97f4a7c15;
  uint64_t hash = 0;
  bool has_word = false;
  const auto finish = [&] {
    if (has_word) take(hash);
    hash = 0;
    has_word = false;
  };
  std::vector<int32_t> ids;
  for (int64_t done = 0; done < document.count; done += ids_at_once) {
    ids.resize(static_cast<size_t>(std::min(ids_at_once, document.count - done)));
    file.read(document.first + done, static_cast<int64_t>(ids.size()), ids.data());
    for (const int32_t id : ids) {
      const TokenRole role = roles.at(static_cast<size_t>(id));
      if (role.is_break) {
        finish();
        continue;
      }
      hash = (hash ^ (static_cast<uint64_t>(id) + 1)) * prime;
      hash ^= hash >> 29;
      has_word = has_word || role.has_word;
      if (role.ends) finish();
    }
  }
  finish();
}

constexpr int64_t documents_at_once = 1000;

std::optional<double> repeated_sentences(const UsedDocuments& evaluation,
                                         const UsedDocuments& training,
                                         const std::vector<TokenRole>& roles,
                                         const Progress& progress) {
  struct Sentence {
    int64_t count = 0;
    std::atomic<bool> is_repeated{false};
  };
  std::unordered_map<uint64_t, Sentence> sentences;
  int64_t all = 0;
  for (int64_t i = 0; i < evaluation.count(); ++i) {
    for_each_sentence(evaluation.file(), evaluation.span(i), roles, [&](uint64_t hash) {
      ++sentences[hash].count;
      ++all;
    });
  }
  if (all == 0) return std::nullopt;
  const int64_t pieces = (training.count() + documents_at_once - 1) / documents_at_once;
  std::mutex mutex;  // of `done` and the progress line
  int64_t done = 0;
  parallel_for(static_cast<size_t>(pieces), [&](size_t piece) {
    const int64_t first = static_cast<int64_t>(piece) * documents_at_once;
    const int64_t end = std::min(training.count(), first + documents_at_once);
    for (int64_t i = first; i < end; ++i) {
      for_each_sentence(training.file(), training.span(i), roles, [&](uint64_t hash) {
        const auto found = sentences.find(hash);
        if (found != sentences.end())
          found->second.is_repeated.store(true, std::memory_order_relaxed);
      });
    }
    const std::lock_guard lock(mutex);
    ++done;
    if (progress) progress(double(done) / double(pieces), "looking for repeated sentences");
  });
  int64_t repeated = 0;
  for (const auto& [hash, sentence] : sentences) {
    if (sentence.is_repeated) repeated += sentence.count;
  }
  return double(repeated) / double(all);
}

/// None where a story is cut off, for nobody can say how many choices the rest of it held.
std::optional<double> entropy_floor(const UsedDocuments& evaluation, uint64_t seed, bool padded) {
  int64_t tokens = 0;
  for (int64_t i = 0; i < evaluation.count(); ++i) {
    const int64_t whole = evaluation.file().document(i).count;
    if (padded && evaluation.span(i).count < whole) return std::nullopt;
    tokens += padded ? whole - 1 : whole;  // a row of its own does not predict the first id
  }
  if (tokens == 0) return std::nullopt;
  const auto stories = static_cast<uint64_t>(evaluation.count());
  return toy_stories_nats(seed, Split::evaluation, stories) / double(tokens);
}

}  // namespace

EvaluationText describe_evaluation_text(const config::Experiment& experiment,
                                        const PreparedData& prepared,
                                        const Progress& progress) {
  const int seq_len = experiment.train.seq_len;
  const bool padded = experiment.data.rows == config::RowKind::padded;
  const UsedDocuments evaluation(prepared.evaluation.at(0), seq_len, padded);
  const UsedDocuments training(prepared.train.at(0), seq_len, padded);
  EvaluationText text;
  if (experiment.data.source == "toy_stories")
    text.entropy_floor = entropy_floor(evaluation, experiment.data.seed, padded);
  const std::vector<TokenRole> roles = roles_of(load_tokenizer(prepared.tokenizer));
  text.repeated_sentences = repeated_sentences(evaluation, training, roles, progress);
  return text;
}

}  // namespace forge::data
