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

Dataset::Dataset(const std::filesystem::path& token_file, const RowOptions& options)
    : file_(std::in_place, token_file), options_(options) {
  const int seq_len = options.seq_len;
  if (seq_len < 1) throw Error("a row of " + std::to_string(seq_len) + " tokens is none");
  const int64_t held =
      options.pad_id ? file_->documents() : rows_of(file_->size(), seq_len, options.last_row);
  if (options.rows < 0 || options.rows > held || held == 0) {
    const std::string of =
        options.pad_id ? " documents" : " rows of " + with_thousands(seq_len) + " tokens";
    throw Error("'" + shown_path(token_file) + "' holds " + with_thousands(held) + of + ", not " +
                    with_thousands(options.rows > 0 ? options.rows : 1),
                {},
                "it has " + with_thousands(file_->size()) +
                    " tokens; a row needs train.seq_len, and the last one more");
  }
  rows_ = options.rows > 0 ? options.rows : held;
}

Dataset::Dataset(
    std::shared_ptr<const tasks::Task> task, uint64_t seed, Split split, int seq_len, int64_t rows)
    : task_(std::move(task)), task_rows_(std::in_place, *task_, seed, split, seq_len), rows_(rows) {
  if (rows < 1) throw Error("no rows of the task " + task_->name() + " are asked for");
  options_.seq_len = seq_len;
}

void Dataset::fill(int64_t position, int count, int32_t* inputs, int32_t* targets) const {
  if (position < 0) throw Error("a data position is never negative: " + std::to_string(position));
  for (int i = 0; i < count; ++i) {
    const uint64_t epoch = static_cast<uint64_t>((position + i) / rows_);
    uint64_t row = static_cast<uint64_t>((position + i) % rows_);
    if (options_.order == config::RowOrder::shuffled) {
      row = permuted_index(
          row, static_cast<uint64_t>(rows_), options_.seed, stream_number("rows") + epoch);
    }
    const int64_t place = int64_t{i} * options_.seq_len;
    fill_row(static_cast<int64_t>(row), inputs + place, targets + place);
  }
}

/// The ids that a row is made of, at most seq_len + 1: each but the first is a target.
TokenSpan Dataset::span_of(int64_t row) const {
  if (options_.pad_id) {
    const TokenSpan document = file_->document(row);
    return {document.first, std::min<int64_t>(options_.seq_len, document.count)};
  }
  const int64_t first = row * options_.seq_len;
  return {first, std::min<int64_t>(int64_t{options_.seq_len} + 1, file_->size() - first)};
}

void Dataset::fill_row(int64_t row, int32_t* inputs, int32_t* targets) const {
  if (task_rows_) return task_rows_->fill(row, inputs, targets);
  const TokenSpan span = span_of(row);
  const int64_t scored = std::max<int64_t>(0, span.count - 1);
  const int64_t read = options_.pad_id ? span.count : scored;
  file_->read(span.first, read, inputs);
  if (scored > 0) file_->read(span.first + 1, scored, targets);
  // What stands behind the text is seen by none of the positions that are scored.
  std::fill(inputs + read, inputs + options_.seq_len, options_.pad_id.value_or(0));
  std::fill(targets + scored, targets + options_.seq_len, unscored_target);
}

void Dataset::number_documents(const int32_t* inputs, int count, int32_t* documents) const {
  for (int64_t row = 0; row < count; ++row) {
    const int32_t* ids = inputs + row * options_.seq_len;
    int32_t number = 0;
    for (int t = 0; t < options_.seq_len; ++t) {
      if (t > 0 && ids[t] == options_.document_start) ++number;
      documents[row * options_.seq_len + t] = number;
    }
  }
}

}  // namespace forge::data
