#include "core/data/scored_bytes.h"

#include <algorithm>
#include <vector>

namespace forge::data {
namespace {

constexpr int64_t tokens_at_once = 1 << 16;

}  // namespace

int64_t scored_bytes(const TokenFile& file, int64_t targets, const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const bool has_prefix = vocabulary.prefix_space != PrefixSpace::none;
  std::vector<int32_t> ids;
  int64_t bytes = 0;
  for (int64_t first = 1; first <= targets; first += tokens_at_once) {
    const int64_t count = std::min(tokens_at_once, targets + 1 - first);
    ids.resize(static_cast<size_t>(count + 1));
    file.read(first - 1, count + 1, ids.data());  // each with the one before it
    for (size_t i = 1; i < ids.size(); ++i) {
      const std::string text = tokenizer.decode_continuation({ids[i]});
      const bool begins = has_prefix && ids[i - 1] == vocabulary.bos_id;
      bytes += static_cast<int64_t>(text.size()) - (begins && text.substr(0, 1) == " " ? 1 : 0);
    }
  }
  return bytes;
}

}  // namespace forge::data
