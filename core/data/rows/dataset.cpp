#include "core/data/rows/dataset.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/base/text.h"
#include "core/base/threads.h"

namespace forge::data {
namespace {

/// Whole numbers in proportion to the weights that add up to `total`: what is left after rounding
/// down goes to the largest remainders.
std::vector<int64_t> shares_of(const std::vector<double>& weights, int64_t total) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> shares;
  std::vector<double> remainders;
  for (const double weight : weights) {
    const double exact = weight / sum * static_cast<double>(total);
    shares.push_back(static_cast<int64_t>(exact));
    remainders.push_back(exact - static_cast<double>(shares.back()));
  }
  int64_t left = total - std::accumulate(shares.begin(), shares.end(), int64_t{0});
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return remainders[a] > remainders[b];
  });
  for (size_t i = 0; left > 0; ++i, --left) ++shares[order[i % order.size()]];
  return shares;
}

std::vector<double> weights_of(const std::vector<RowSource>& sources) {
  std::vector<double> weights;
  for (const RowSource& source : sources) weights.push_back(source.weight);
  return weights;
}

}  // namespace

/// Row j of a source with n of a period's P rows has its turn from floor(j P / n) on and before
/// ceil((j + 1) P / n). Where the sources' shares add up to P, taking the earliest deadline of
/// those whose time has come meets every one of them (Baruah et al., "Proportionate progress: a
/// notion of fairness in resource allocation", Algorithmica 1996).
Mixture::Mixture(const std::vector<double>& weights) {
  for (const double weight : weights) {
    if (!(weight > 0)) throw Error("a weight must be above 0, not " + shortest(weight));
  }
  if (weights.empty()) throw Error("a mixture needs something to mix");
  shares_ = shares_of(weights, period);
  const auto none = std::find(shares_.begin(), shares_.end(), 0);
  if (none != shares_.end()) {
    throw Error("the weight " + shortest(weights[size_t(none - shares_.begin())]) +
                " is less than one row in " + with_thousands(period) + " of all");
  }
  if (weights.size() == 1) return;
  std::vector<int64_t> given(weights.size());
  turns_.reserve(static_cast<size_t>(period));
  for (int64_t turn = 0; turn < period; ++turn) {
    size_t next = 0;
    int64_t earliest = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] == shares_[i] || given[i] * period / shares_[i] > turn) continue;
      const int64_t deadline = ((given[i] + 1) * period + shares_[i] - 1) / shares_[i];
      if (earliest != 0 && deadline >= earliest) continue;
      next = i;
      earliest = deadline;
    }
    turns_.push_back({static_cast<uint32_t>(next), static_cast<uint32_t>(given[next]++)});
  }
}

Mixture::Place Mixture::place_of(int64_t position) const {
  if (turns_.empty()) return {0, position};
  const Turn turn = turns_[static_cast<size_t>(position % period)];
  return {turn.source, position / period * shares_[turn.source] + turn.row};
}

int64_t Mixture::rows_of(size_t source, int64_t rows) const {
  if (turns_.empty()) return rows;
  const auto rest = turns_.begin() + rows % period;
  const int64_t of_rest =
      std::count_if(turns_.begin(), rest, [&](Turn turn) { return turn.source == source; });
  return rows / period * shares_[source] + of_rest;
}

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
  if (options_.interleaving == Interleaving::weighted) return mixture_.place_of(position);
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
void Dataset::fill_row(const TokenFile& file,
                       int64_t row,
                       int32_t* inputs,
                       int32_t* targets) const {
  const TokenSpan span = file.row_span(row, options_.seq_len, options_.pad_id.has_value());
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

BatchLoader::BatchLoader(const Dataset& dataset, const LoaderOptions& options)
    : dataset_(dataset),
      options_(options),
      // One more than is kept ready: that which was given out.
      slots_(static_cast<size_t>(std::max(1, options.prefetch)) + 1),
      next_index_(options.first_batch),
      next_to_fill_(options.first_batch) {
  const Shard shard = options.shard;
  if (shard.ranks < 1 || shard.rank < 0 || shard.rank >= shard.ranks) {
    throw Error("there is no rank " + std::to_string(shard.rank) + " among " +
                std::to_string(shard.ranks));
  }
  if (options.batch_size < 1 || options.first_batch < 0) {
    throw Error("a loader needs rows to load, from batch 0 on at the earliest");
  }
  try {
    for (int i = 0; i < std::max(1, options.threads); ++i)
      threads_.push_back(start_thread([this] { work(); }));
  } catch (const Error&) {
    if (threads_.empty()) throw;  // the others do the work
  }
}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BatchLoader::fill(int64_t number, RowBatch& batch) const {
  const auto size = static_cast<size_t>(options_.batch_size) * size_t(dataset_.seq_len());
  batch.inputs.resize(size);
  batch.targets.resize(size);
  const Shard shard = options_.shard;
  const int64_t position = (number * shard.ranks + shard.rank) * options_.batch_size;
  dataset_.fill(position, options_.batch_size, batch.inputs.data(), batch.targets.data());
  if (!dataset_.divides_documents()) return;
  batch.documents.resize(size);
  dataset_.number_documents(batch.inputs.data(), options_.batch_size, batch.documents.data());
}

void BatchLoader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    // One slot holds the batch that next() returned last.
    const auto has_room = [&] {
      return next_to_fill_ < next_index_ + static_cast<int64_t>(slots_.size()) - 1;
    };
    changed_.wait(lock, [&] { return stopped_ || has_room(); });
    if (stopped_) return;
    const int64_t number = next_to_fill_++;
    Slot& slot = slot_of(number);
    lock.unlock();
    try {
      fill(number, slot.batch);
      lock.lock();
      slot.batch_index = number;
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      failure_ = std::current_exception();
      stopped_ = true;
    }
    changed_.notify_all();
  }
}

const RowBatch& BatchLoader::next() {
  std::unique_lock lock(mutex_);
  Slot& slot = slot_of(next_index_);
  changed_.wait(lock, [&] { return failure_ || slot.batch_index == next_index_; });
  if (slot.batch_index != next_index_) std::rethrow_exception(failure_);
  ++next_index_;
  lock.unlock();
  changed_.notify_all();
  return slot.batch;
}

}  // namespace forge::data
