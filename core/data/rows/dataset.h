#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/config/experiment.h"
#include "core/data/common.h"
#include "core/data/rows/token_file.h"
#include "core/data/tasks/task_rows.h"

namespace forge::data {

/// The order in which several sources of rows take turns: after any number of rows each has given
/// its share of them to within one row. The order follows from the weights alone and is the same on
/// any machine; it repeats itself after `period` rows, so weights are rounded to as many parts.
class Mixture {
 public:
  static constexpr int64_t period = 100'000;

  /// Throws Error where a weight is not above 0, or so small that it stands for no row of a period.
  explicit Mixture(const std::vector<double>& weights);

  /// A row of one of the sources: its row number `row`, from 0 on, of all that it ever gives.
  struct Place {
    size_t source = 0;
    int64_t row = 0;
  };
  /// Where row `position` of the mixture comes from. Takes the same time anywhere.
  Place place_of(int64_t position) const;

  /// How many of the mixture's first `rows` rows come from a source.
  int64_t rows_of(size_t source, int64_t rows) const;

  /// Of a source, in rows a period.
  int64_t share(size_t source) const { return shares_[source]; }

 private:
  struct Turn {
    uint32_t source;
    uint32_t row;
  };

  std::vector<int64_t> shares_;
  std::vector<Turn> turns_;  ///< of a period; none where there is one source
};

/// What becomes of the ids behind the last whole row.
enum class LastRow {
  whole,         ///< they are left out
  may_be_short,  ///< they are a row whose missing targets are not scored
};

/// Rows of `seq_len` targets in `tokens` tokens: every token but the first is a target.
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
enum class Interleaving {
  weighted,    ///< as Mixture has it; each source begins anew when its rows are used up
  sequential,  ///< first all rows of the first one
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
  Interleaving interleaving = Interleaving::weighted;
};

/// Rows of token files, or of a task, as training examples.
///
/// Packed, row r is the window of seq_len + 1 ids that begins at r * seq_len: its first seq_len ids
/// are the inputs, its last seq_len the targets. Padded, row r is the first seq_len ids of document
/// r, each the target of the one before it. Targets that are missing are not scored.
///
/// A position is the number of rows already served. Epochs follow one another; with the order
/// `shuffled` each has another order. Each file has its own epochs and order, whatever the other
/// files are.
///
/// The same arguments and position give the same bytes on any machine. Immutable: any number of
/// threads may use one.
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
  void fill_row(const TokenFile& file, int64_t row, int32_t* inputs, int32_t* targets) const;

  std::vector<Part> parts_;  ///< none where task_ and task_rows_ are there
  std::shared_ptr<const tasks::Task> task_;
  std::optional<tasks::TaskRows> task_rows_;
  int64_t first_task_row_ = 0;
  RowOptions options_;
  Mixture mixture_;
  int64_t rows_ = 0;
};

/// Which of the processes that train a model together this one is.
struct Shard {
  int rank = 0;
  int ranks = 1;
};

/// The rows of one step.
struct RowBatch {
  std::vector<int32_t> inputs;     ///< [batch_size, seq_len]
  std::vector<int32_t> targets;    ///< the same, unscored_target = not scored
  std::vector<int32_t> documents;  ///< the same, empty where rows are not divided
};

struct LoaderOptions {
  int batch_size = 1;       ///< rows of a step, of this shard
  int64_t first_batch = 0;  ///< steps already served: the whole state of a loader
  int threads = 1;
  int prefetch = 4;  ///< batches that are kept ready
  Shard shard;
};

/// Batches of a dataset, one after another, filled by threads before they are asked for. Batch n of
/// rank r holds the rows at positions (n * ranks + r) * batch_size and on, so all ranks together
/// see what one process with as many rows a step would see. The bytes depend on the dataset and the
/// number of the batch alone, not on threads.
class BatchLoader {
 public:
  /// The dataset outlives the loader.
  BatchLoader(const Dataset& dataset, const LoaderOptions& options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  /// The next batch, there until the next call. Waits only where the threads are behind. What they
  /// throw is thrown here.
  const RowBatch& next();

 private:
  struct Slot {
    RowBatch batch;
    int64_t batch_index = -1;  ///< number of the batch that is ready in it
  };

  void work();
  void fill(int64_t number, RowBatch& batch) const;
  Slot& slot_of(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  const Dataset& dataset_;
  const LoaderOptions options_;
  std::vector<Slot> slots_;
  std::mutex mutex_;  ///< of what follows, and of Slot::batch_index
  std::condition_variable changed_;
  int64_t next_index_ = 0;  ///< number of the batch that next() gives next
  int64_t next_to_fill_ = 0;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace forge::data
