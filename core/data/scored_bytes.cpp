#include "core/data/scored_bytes.h"

#include <algorithm>
#include <vector>

namespace forge::data {
namespace {

constexpr int64_t tokens_at_once = 1 << 16;

/// Of ids first … first+count-1, of which none is the first of the file.
int64_t bytes_of(const TokenFile& file,
                 int64_t first,
                 int64_t count,
                 const Tokenizer& tokenizer,
                 std::vector<int32_t>& ids) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  ids.resize(static_cast<size_t>(count + 1));
  file.read(first - 1, count + 1, ids.data());  // each with the one before it
  const bool has_prefix = vocabulary.prefix_space != PrefixSpace::none;
  int64_t bytes = 0;
  for (size_t i = 1; i < ids.size(); ++i) {
    const std::string text = tokenizer.decode_continuation({ids[i]});
    const bool begins = has_prefix && ids[i - 1] == vocabulary.bos_id;
    bytes += static_cast<int64_t>(text.size()) - (begins && text.substr(0, 1) == " " ? 1 : 0);
  }
  return bytes;
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
    const TokenSpan document = file.document(row);
    const int64_t targets = std::min<int64_t>(document.count, seq_len) - 1;
    if (targets > 0) bytes += bytes_of(file, document.first + 1, targets, tokenizer, ids);
  }
  return bytes;
}

}  // namespace forge::data
