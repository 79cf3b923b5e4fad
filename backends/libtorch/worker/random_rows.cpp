#include "backends/libtorch/worker/random_rows.h"

#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/data/token_file_writer.h"

namespace forge::worker {
namespace {

constexpr int64_t fewest_steps = 4;
constexpr int64_t fewest_tokens = 1 << 20;
constexpr int64_t document_length = 256;
constexpr int32_t document_start = 0;

/// Removed at the end of its scope: a mapped file stays readable without its name.
class TemporaryTokens {
 public:
  TemporaryTokens() {
    std::string pattern = (fs::temp_directory_path() / "forge-bench-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) throw system_error("make a folder '" + pattern + "'", errno);
    folder_ = pattern;
  }
  ~TemporaryTokens() {
    std::error_code ignored;
    remove_tree(folder_, ignored);
  }
  TemporaryTokens(const TemporaryTokens&) = delete;
  TemporaryTokens& operator=(const TemporaryTokens&) = delete;
  fs::path file() const { return folder_ / "random.tokens"; }

 private:
  fs::path folder_;
};

}  // namespace

data::Dataset random_rows(const config::Experiment& experiment) {
  const config::TrainConfig& train = experiment.train;
  const auto vocabulary = static_cast<uint32_t>(experiment.model.vocab_size);
  const int64_t of_a_step = int64_t{train.batch_size} * train.seq_len;
  const int64_t count = std::max(fewest_tokens, fewest_steps * of_a_step) + 1;
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (size_t i = 0; i < ids.size(); i += 4) {
    const auto words = philox({static_cast<uint32_t>(i / 4), 0, 0, 0}, experiment.data.seed);
    for (size_t j = 0; j < 4 && i + j < ids.size(); ++j) {
      ids[i + j] = static_cast<int32_t>(words[j] % vocabulary);
    }
  }
  for (size_t i = 0; i < ids.size(); i += document_length) ids[i] = document_start;
  const TemporaryTokens temporary;
  data::TokenFileWriter writer(
      temporary.file(), experiment.model.vocab_size, hash_hex("random token ids"));
  writer.append(ids.data(), ids.size());
  writer.finish();
  data::RowOptions options;
  options.seq_len = train.seq_len;
  options.order = config::RowOrder::shuffled;
  options.seed = experiment.data.seed;
  if (train.document_mask) options.document_start = document_start;
  return data::Dataset(temporary.file(), options);
}

}  // namespace forge::worker
