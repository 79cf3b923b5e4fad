#include "core/data/rows/token_statistics.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"

namespace forge::data {
namespace {

constexpr int64_t tokens_at_once = 1 << 16;

/// Where the text of each document begins in a file, behind its special tokens, from some id on.
class Beginnings {
 public:
  Beginnings(const TokenFile& file, const Vocabulary& vocabulary, int64_t first)
      : file_(file), special_(static_cast<int64_t>(vocabulary.before_text.size())) {
    int64_t end = file.documents();  // the first one that begins there or behind
    while (next_ < end) {
      const int64_t middle = next_ + (end - next_) / 2;
      if (place_of(middle) < first) {
        next_ = middle + 1;
      } else {
        end = middle;
      }
    }
  }

  /// Whether one is at that id; to be asked in order.
  bool has(int64_t id) {
    while (next_ < file_.documents() && place_of(next_) < id) ++next_;
    return next_ < file_.documents() && place_of(next_) == id;
  }

 private:
  int64_t place_of(int64_t document) const { return file_.document(document).first + special_; }

  const TokenFile& file_;
  int64_t special_;
  int64_t next_ = 0;
};

/// Of ids first … first+count-1. The space that is put in front of a document stands for no byte of
/// it.
int64_t bytes_of(const TokenFile& file,
                 int64_t first,
                 int64_t count,
                 const Tokenizer& tokenizer,
                 std::vector<int32_t>& ids) {
  ids.resize(static_cast<size_t>(count));
  file.read(first, count, ids.data());
  const bool has_prefix = tokenizer.vocabulary().prefix_space != PrefixSpace::none;
  Beginnings beginnings(file, tokenizer.vocabulary(), first);
  int64_t bytes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const std::string text = tokenizer.decode_continuation({ids[static_cast<size_t>(i)]});
    const bool begins = has_prefix && beginnings.has(first + i);
    bytes += static_cast<int64_t>(text.size()) - (begins && text.substr(0, 1) == " " ? 1 : 0);
  }
  return bytes;
}

constexpr int64_t tokens_per_read = 1 << 20;

std::vector<int64_t> count_ids(const TokenFile& file,
                               int32_t vocab_size,
                               const Progress& progress) {
  std::vector<int64_t> counts(static_cast<size_t>(vocab_size));
  std::vector<int32_t> ids;
  for (int64_t first = 0; first < file.size(); first += tokens_per_read) {
    ids.resize(static_cast<size_t>(std::min(tokens_per_read, file.size() - first)));
    file.read(first, static_cast<int64_t>(ids.size()), ids.data());
    for (const int32_t id : ids) {
      if (id >= vocab_size) {
        throw Error("the token file holds the id " + std::to_string(id) +
                    ", the vocabulary has only " + std::to_string(vocab_size) + " entries");
      }
      ++counts[static_cast<size_t>(id)];
    }
    file.forget();
    if (progress) progress(double(first) / double(file.size()), "counting tokens");
  }
  return counts;
}

std::vector<TokenCount> most_frequent(const std::vector<int64_t>& counts, int top) {
  std::vector<TokenCount> list;
  for (size_t id = 0; id < counts.size(); ++id) {
    if (counts[id] > 0) list.push_back({static_cast<int32_t>(id), counts[id]});
  }
  const size_t kept = std::min(list.size(), static_cast<size_t>(std::max(0, top)));
  std::partial_sort(list.begin(),
                    list.begin() + static_cast<std::ptrdiff_t>(kept),
                    list.end(),
                    [](const TokenCount& a, const TokenCount& b) {
                      return a.count != b.count ? a.count > b.count : a.id < b.id;
                    });
  list.resize(kept);
  return list;
}

void add_lengths(const TokenFile& file, TokenStatistics& statistics) {
  std::map<int64_t, int64_t> lengths;  // as many entries as there are different ones
  for (int64_t i = 0; i < file.documents(); ++i) ++lengths[file.document(i).count];
  if (lengths.empty()) return;
  statistics.shortest = lengths.begin()->first;
  statistics.longest = lengths.rbegin()->first;
  statistics.mean_length = double(file.size()) / double(file.documents());
  int64_t seen = 0;
  std::vector<double> wanted = {0.95, 0.75, 0.5, 0.25, 0.05};
  for (const auto& [length, count] : lengths) {
    seen += count;
    while (!wanted.empty() && double(seen) >= wanted.back() * double(file.documents())) {
      statistics.quantiles.push_back(length);
      wanted.pop_back();
    }
    const auto place = static_cast<size_t>(length < 2 ? 0 : std::ilogb(double(length)));
    if (statistics.length_classes.size() <= place) statistics.length_classes.resize(place + 1);
    statistics.length_classes[place] += count;
  }
}

}  // namespace

int64_t scored_bytes(const TokenFile& file, int64_t targets, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  int64_t bytes = 0;
  for (int64_t first = 1; first <= targets; first += tokens_at_once) {
    bytes += bytes_of(file, first, std::min(tokens_at_once, targets + 1 - first), tokenizer, ids);
  }
  return bytes;
}

int64_t scored_bytes_of_documents(const TokenFile& file,
                                  int64_t rows,
                                  int seq_len,
                                  const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  int64_t bytes = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const TokenSpan span = file.row_span(row, seq_len, true);
    if (span.count > 1) bytes += bytes_of(file, span.first + 1, span.count - 1, tokenizer, ids);
  }
  return bytes;
}

TokenStatistics statistics_of(const TokenFile& file,
                              const Tokenizer& tokenizer,
                              int top,
                              const Progress& progress) {
  file.verify_hash();
  TokenStatistics statistics;
  statistics.tokens = file.size();
  statistics.documents = file.documents();
  const std::vector<int64_t> counts = count_ids(file, tokenizer.vocab_size(), progress);
  for (size_t id = 0; id < counts.size(); ++id) {
    const std::string text = tokenizer.decode_continuation({static_cast<int32_t>(id)});
    statistics.text_bytes += counts[id] * static_cast<int64_t>(text.size());
    if (counts[id] == 0) ++statistics.unused_entries;
  }
  // The space that is put in front of a document stands for no byte of it.
  const int64_t special = tokenizer.bos_id() >= 0 ? 1 : 0;
  const bool has_prefix = tokenizer.vocabulary().prefix_space != PrefixSpace::none;
  for (int64_t i = 0; has_prefix && i < file.documents(); ++i) {
    if (file.document(i).count > special) --statistics.text_bytes;
  }
  statistics.top = most_frequent(counts, top);
  add_lengths(file, statistics);
  return statistics;
}

}  // namespace forge::data
