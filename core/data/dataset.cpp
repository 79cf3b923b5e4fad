#include "core/data/dataset.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"

namespace forge::data {

int64_t rows_of(int64_t tokens, int seq_len, LastRow last_row) {
  const int64_t targets = std::max<int64_t>(0, tokens - 1);
  return (last_row == LastRow::may_be_short ? targets + seq_len - 1 : targets) / seq_len;
}

Dataset::Dataset(const std::filesystem::path& token_file,
                 int seq_len,
                 config::RowOrder order,
                 uint64_t seed,
                 int64_t rows,
                 std::optional<int32_t> document_start,
                 LastRow last_row)
    : file_(token_file),
      rows_(0),
      seq_len_(seq_len),
      order_(order),
      seed_(seed),
      document_start_(document_start) {
  if (seq_len < 1) throw Error("a row of " + std::to_string(seq_len) + " tokens is none");
  const int64_t held = rows_of(file_.size(), seq_len, last_row);
  if (rows < 0 || rows > held || held == 0) {
    throw Error("'" + shown_path(token_file) + "' holds " + with_thousands(held) + " rows of " +
                    with_thousands(seq_len) + " tokens, not " + with_thousands(rows > 0 ? rows : 1),
                {},
                "it has " + with_thousands(file_.size()) +
                    " tokens; a row needs train.seq_len, and the last one more");
  }
  rows_ = rows > 0 ? rows : held;
}

void Dataset::fill(int64_t position, int count, int32_t* inputs, int32_t* targets) const {
  if (position < 0) throw Error("a data position is never negative: " + std::to_string(position));
  for (int i = 0; i < count; ++i) {
    const uint64_t epoch = static_cast<uint64_t>((position + i) / rows_);
    uint64_t row = static_cast<uint64_t>((position + i) % rows_);
    if (order_ == config::RowOrder::shuffled) {
      row = permuted_index(row, static_cast<uint64_t>(rows_), seed_, stream_number("rows") + epoch);
    }
    fill_row(
        static_cast<int64_t>(row), inputs + int64_t{i} * seq_len_, targets + int64_t{i} * seq_len_);
  }
}

void Dataset::fill_row(int64_t row, int32_t* inputs, int32_t* targets) const {
  const int64_t first = row * seq_len_;
  const int64_t scored = std::min<int64_t>(seq_len_, file_.size() - 1 - first);
  file_.read(first, scored, inputs);
  file_.read(first + 1, scored, targets);
  // What stands behind the text is seen by none of the positions that are scored.
  std::fill(inputs + scored, inputs + seq_len_, 0);
  std::fill(targets + scored, targets + seq_len_, unscored_target);
}

void Dataset::number_documents(const int32_t* inputs, int count, int32_t* documents) const {
  for (int64_t row = 0; row < count; ++row) {
    const int32_t* ids = inputs + row * seq_len_;
    int32_t number = 0;
    for (int t = 0; t < seq_len_; ++t) {
      if (t > 0 && ids[t] == document_start_) ++number;
      documents[row * seq_len_ + t] = number;
    }
  }
}

}  // namespace forge::data
