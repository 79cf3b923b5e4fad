#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/config/experiment.h"
#include "core/data/token_file.h"

namespace forge::data {

/// What becomes of the ids behind the last whole row.
enum class LastRow {
  whole,         ///< they are left out
  may_be_short,  ///< they are a row whose missing targets are not scored
};

/// A target that is not scored.
constexpr int32_t unscored_target = -100;

/// Rows of `seq_len` targets that so many tokens make: every token but the first is a target.
int64_t rows_of(int64_t tokens, int seq_len, LastRow last_row);

/// Rows of a token file as training examples. Row r is the window of seq_len + 1 ids that begins at
/// r * seq_len: its first seq_len ids are the inputs, its last seq_len the targets. A position is
/// the number of rows already served; epochs follow one another, each shuffled anew where the order
/// is `shuffled`. The same arguments and position give the same bytes on any machine.
class Dataset {
 public:
  /// Throws Error where the file does not hold the rows. `rows` 0 = all that the file holds.
  /// `document_start` is the id that begins a document, where rows are to be divided.
  Dataset(const std::filesystem::path& token_file,
          int seq_len,
          config::RowOrder order,
          uint64_t seed,
          int64_t rows = 0,
          std::optional<int32_t> document_start = {},
          LastRow last_row = LastRow::whole);

  int64_t rows() const { return rows_; }
  int seq_len() const { return seq_len_; }
  bool divides_documents() const { return document_start_.has_value(); }

  /// Fills int32 [count, seq_len] inputs and targets with the rows at position … position+count-1.
  /// A target that is unscored_target counts for nothing.
  void fill(int64_t position, int count, int32_t* inputs, int32_t* targets) const;

  /// Numbers the documents of `count` rows of inputs, each row from 0 on: a document begins at
  /// document_start, and what stands before the first one in a row is the end of another.
  void number_documents(const int32_t* inputs, int count, int32_t* documents) const;

 private:
  void fill_row(int64_t row, int32_t* inputs, int32_t* targets) const;

  TokenFile file_;
  int64_t rows_;
  int seq_len_;
  config::RowOrder order_;
  uint64_t seed_;
  std::optional<int32_t> document_start_;
};

}  // namespace forge::data
