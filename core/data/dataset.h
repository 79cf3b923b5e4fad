#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/data/mixture.h"
#include "core/data/split.h"
#include "core/data/target.h"
#include "core/data/tasks/rows.h"
#include "core/data/token_file.h"

namespace forge::data {

/// What becomes of the ids behind the last whole row.
enum class LastRow {
  whole,         ///< they are left out
  may_be_short,  ///< they are a row whose missing targets are not scored
};

/// Rows of `seq_len` targets that so many tokens make: every token but the first is a target.
int64_t rows_of(int64_t tokens, int seq_len, LastRow last_row);

/// A token file that rows are taken from, alone or with others.
struct RowSource {
  std::filesystem::path tokens;
  int64_t rows = 0;       ///< of the file; 0: all that it holds from first_row on
  std::string name = {};  ///< what its order is drawn by, beside the seed; "" where it is alone
  double weight = 1;      ///< its share of the rows over that of all sources
  int64_t first_row = 0;  ///< of the file
};

/// How several sources take turns.
enum class Turns {
  by_weight,          ///< as Mixture has it; each source begins anew when its rows are used up
  one_after_another,  ///< first all rows of the first one
};

/// Which rows of a token file, and in which order.
struct RowOptions {
  int seq_len = 0;
  config::RowOrder order = config::RowOrder::sequential;
  uint64_t seed = 0;                           ///< of the order
  int64_t rows = 0;                            ///< of a single file; 0: all that it holds
  std::optional<int32_t> document_start = {};  ///< id that begins a document, to divide rows by
  LastRow last_row = LastRow::whole;
  std::optional<int32_t> pad_id = {};  ///< a row is a document, with this id behind it
  Turns turns = Turns::by_weight;
};

/// Rows of token files, or of a task, as training examples. Packed, row r is the window of seq_len
/// + 1 ids that begins at r * seq_len: its first seq_len ids are the inputs, its last seq_len the
/// targets. Padded, row r is the first seq_len ids of document r, each the target of the one before
/// it, and what is missing is not scored. A position is the number of rows already served; epochs
/// follow one another, each shuffled anew where the order is `shuffled`. Of several files each has
/// epochs and an order of its own, in which the others change nothing. The same arguments and
/// position give the same bytes on any machine. Immutable: any number of threads may use one.
class Dataset {
 public:
  /// Throws Error where a file does not hold the rows.
  Dataset(const std::vector<RowSource>& sources, const RowOptions& options);
  Dataset(const std::filesystem::path& token_file, const RowOptions& options);

  /// `rows` rows of a task that has ids of its own, from `first_row` on, in order, each made when
  /// it is asked for.
  Dataset(std::shared_ptr<const tasks::Task> task,
          uint64_t seed,
          Split split,
          int seq_len,
          int64_t rows,
          int64_t first_row = 0);

  /// Of all sources: an epoch, where there is one source.
  int64_t rows() const { return rows_; }
  int seq_len() const { return options_.seq_len; }
  bool divides_documents() const { return options_.document_start.has_value(); }

  /// Fills int32 [count, seq_len] inputs and targets with the rows at position … position+count-1.
  /// A target that is unscored_target counts for nothing.
  void fill(int64_t position, int count, int32_t* inputs, int32_t* targets) const;

  /// Numbers the documents of `count` rows of inputs, each row from 0 on: a document begins at
  /// document_start, and what stands before the first one in a row is the end of another.
  void number_documents(const int32_t* inputs, int count, int32_t* documents) const;

 private:
  struct Part {
    TokenFile file;
    int64_t rows;
    uint64_t stream;  ///< of its order in the first epoch
    int64_t first_row;
  };

  Mixture::Place place_of(int64_t position) const;
  int64_t row_of(const Part& part, int64_t number) const;
  TokenSpan span_of(const TokenFile& file, int64_t row) const;
  void fill_row(const TokenFile& file, int64_t row, int32_t* inputs, int32_t* targets) const;

  std::vector<Part> parts_;  ///< none where task_ and task_rows_ are there
  std::shared_ptr<const tasks::Task> task_;
  std::optional<tasks::TaskRows> task_rows_;
  int64_t first_task_row_ = 0;
  RowOptions options_;
  Mixture mixture_;
  int64_t rows_ = 0;
};

}  // namespace forge::data
