#include "core/data/dataset.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"

namespace forge::data {
namespace {

std::vector<double> weights_of(const std::vector<RowSource>& sources) {
  std::vector<double> weights;
  for (const RowSource& source : sources) weights.push_back(source.weight);
  return weights;
}

}  // namespace

int64_t rows_of(int64_t tokens, int seq_len, LastRow last_row) {
  const int64_t targets = std::max<int64_t>(0, tokens - 1);
  return (last_row == LastRow::may_be_short ? targets + seq_len - 1 : targets) / seq_len;
}

Dataset::Dataset(const std::filesystem::path& token_file, const RowOptions& options)
    : Dataset(std::vector<RowSource>{{token_file, options.rows}}, options) {}

Dataset::Dataset(const std::vector<RowSource>& sources, const RowOptions& options)
    : options_(options), mixture_(weights_of(sources)) {
  const int seq_len = options.seq_len;
  if (seq_len < 1) throw Error("a row of " + std::to_string(seq_len) + " tokens is none");
  for (const RowSource& source : sources) {
    TokenFile file(source.tokens);
    const int64_t held =
        options.pad_id ? file.documents() : data::rows_of(file.size(), seq_len, options.last_row);
    const int64_t given = held - source.first_row;
    if (source.rows < 0 || source.first_row < 0 || source.rows > given || given <= 0) {
      const std::string of =
          options.pad_id ? " documents" : " rows of " + with_thousands(seq_len) + " tokens";
      throw Error("'" + shown_path(source.tokens) + "' holds " + with_thousands(held) + of +
                      ", not " +
                      with_thousands(source.first_row + (source.rows > 0 ? source.rows : 1)),
                  {},
                  "it has " + with_thousands(file.size()) +
                      " tokens; a row needs train.seq_len, and the last one more");
    }
    const std::string stream = source.name.empty() ? "rows" : "rows of " + source.name;
    const int64_t rows = source.rows > 0 ? source.rows : given;
    parts_.push_back({std::move(file), rows, stream_number(stream), source.first_row});
    rows_ += rows;
  }
}

Mixture::Place Dataset::place_of(int64_t position) const {
  if (options_.turns == Turns::by_weight) return mixture_.place_of(position);
  const int64_t epoch = position / rows_;
  int64_t row = position % rows_;
  size_t source = 0;
  while (row >= parts_[source].rows) row -= parts_[source++].rows;
  return {source, epoch * parts_[source].rows + row};
}

/// The row of the file that a source gives as its row `number` of all.
int64_t Dataset::row_of(const Part& part, int64_t number) const {
  const auto row = static_cast<uint64_t>(number % part.rows);
  if (options_.order == config::RowOrder::sequential)
    return part.first_row + static_cast<int64_t>(row);
  const auto epoch = static_cast<uint64_t>(number / part.rows);
  return part.first_row +
         static_cast<int64_t>(permuted_index(
             row, static_cast<uint64_t>(part.rows), options_.seed, part.stream + epoch));
}

Dataset::Dataset(std::shared_ptr<const tasks::Task> task,
                 uint64_t seed,
                 Split split,
                 int seq_len,
                 int64_t rows,
                 int64_t first_row)
    : task_(std::move(task)),
      task_rows_(std::in_place, *task_, seed, split, seq_len),
      first_task_row_(first_row),
      mixture_({1.0}),
      rows_(rows) {
  if (rows < 1) throw Error("no rows of the task " + task_->name() + " are asked for");
  options_.seq_len = seq_len;
}

void Dataset::fill(int64_t position, int count, int32_t* inputs, int32_t* targets) const {
  if (position < 0) throw Error("a data position is never negative: " + std::to_string(position));
  for (int i = 0; i < count; ++i) {
    const int64_t offset = int64_t{i} * options_.seq_len;
    if (task_rows_) {
      task_rows_->fill(first_task_row_ + (position + i) % rows_, inputs + offset, targets + offset);
      continue;
    }
    const Mixture::Place place = place_of(position + i);
    const Part& part = parts_[place.source];
    fill_row(part.file, row_of(part, place.row), inputs + offset, targets + offset);
  }
}

/// The ids that a row is made of, at most seq_len + 1: each but the first is a target.
TokenSpan Dataset::span_of(const TokenFile& file, int64_t row) const {
  if (options_.pad_id) {
    const TokenSpan document = file.document(row);
    return {document.first, std::min<int64_t>(options_.seq_len, document.count)};
  }
  const int64_t first = row * options_.seq_len;
  return {first, std::min<int64_t>(int64_t{options_.seq_len} + 1, file.size() - first)};
}

void Dataset::fill_row(const TokenFile& file,
                       int64_t row,
                       int32_t* inputs,
                       int32_t* targets) const {
  const TokenSpan span = span_of(file, row);
  const int64_t scored = std::max<int64_t>(0, span.count - 1);
  const int64_t read = options_.pad_id ? span.count : scored;
  file.read(span.first, read, inputs);
  if (scored > 0) file.read(span.first + 1, scored, targets);
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
