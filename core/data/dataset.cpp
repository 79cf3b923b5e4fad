#include "core/data/dataset.h"

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"

namespace forge::data {

Dataset::Dataset(const std::filesystem::path& token_file,
                 int seq_len,
                 config::RowOrder order,
                 uint64_t seed,
                 int64_t rows,
                 std::optional<int32_t> document_start)
    : file_(token_file),
      rows_(0),
      seq_len_(seq_len),
      order_(order),
      seed_(seed),
      document_start_(document_start) {
  if (seq_len < 1) throw Error("a row of " + std::to_string(seq_len) + " tokens is none");
  const int64_t whole_rows = file_.size() > 0 ? (file_.size() - 1) / seq_len : 0;
  if (rows < 0 || rows > whole_rows || whole_rows == 0) {
    throw Error("'" + shown_path(token_file) + "' holds " + with_thousands(whole_rows) +
                    " rows of " + with_thousands(seq_len) + " tokens, not " +
                    with_thousands(rows > 0 ? rows : 1),
                {},
                "it has " + with_thousands(file_.size()) +
                    " tokens; a row needs train.seq_len, and the last one more");
  }
  rows_ = rows > 0 ? rows : whole_rows;
}

void Dataset::fill(int64_t position, int count, int32_t* inputs, int32_t* targets) const {
  if (position < 0) throw Error("a data position is never negative: " + std::to_string(position));
  for (int i = 0; i < count; ++i) {
    const uint64_t epoch = static_cast<uint64_t>((position + i) / rows_);
    uint64_t row = static_cast<uint64_t>((position + i) % rows_);
    if (order_ == config::RowOrder::shuffled) {
      row = permuted_index(row, static_cast<uint64_t>(rows_), seed_, stream_number("rows") + epoch);
    }
    const int64_t first = static_cast<int64_t>(row) * seq_len_;
    file_.read(first, seq_len_, inputs + int64_t{i} * seq_len_);
    file_.read(first + 1, seq_len_, targets + int64_t{i} * seq_len_);
  }
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
