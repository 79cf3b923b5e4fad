#include "core/data/word_counts.h"

#include <algorithm>
#include <deque>
#include <future>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/data/pretokenizer.h"

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

void add(Counts& sum, Counts&& more) {
  if (sum.empty()) sum.swap(more);
  for (const auto& [word, count] : more) sum[word] += count;
}

}  // namespace

Counts count_words(const NextDocument& next_document) {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::deque<std::future<Counts>> under_way;
  Counts counts;
  const auto take_first = [&] {
    add(counts, under_way.front().get());
    under_way.pop_front();
  };
  for (Documents documents = take_documents(next_document); !documents.empty();
       documents = take_documents(next_document)) {
    under_way.push_back(std::async(std::launch::async, count_in, std::move(documents)));
    if (under_way.size() > cores) take_first();
  }
  while (!under_way.empty()) take_first();
  return counts;
}

}  // namespace forge::data
