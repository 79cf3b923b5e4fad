#include "core/data/prepare.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/data/corpus/corpus.h"
#include "core/data/dataset.h"
#include "core/data/token_file.h"
#include "core/data/token_file_writer.h"
#include "core/data/token_stream.h"
#include "core/data/tokenizer_file.h"
#include "core/data/tokenizer_json.h"

namespace forge::data {
namespace {

/// Raised by hand when the same text would get another tokenizer or other ids.
constexpr int preparation_version = 1;

constexpr double max_generated_tokens = 1e11;  // 200 GB of token file

/// The text of an experiment, whichever source it has.
class Source {
 public:
  Source(const config::DataConfig& config, const Progress& progress) : seed_(config.seed) {
    if (config.source == "toy_stories") {
      fingerprint_ = hash_hex("toy_stories " + std::to_string(toy_stories_version) + " seed " +
                              std::to_string(config.seed));
    } else if (config.source == "text" || config.source == "jsonl") {
      if (config.path.empty()) {
        throw Error("data.source is '" + config.source + "', but data.path is empty",
                    {},
                    "set data.path to a file or a folder of files");
      }
      corpus_.emplace(config, progress);
      fingerprint_ = corpus_->fingerprint();
    } else {
      throw Error("unknown data.source '" + config.source + "'", {}, "toy_stories, text or jsonl");
    }
  }

  bool is_endless() const { return !corpus_; }
  const std::string& fingerprint() const { return fingerprint_; }

  NextDocument sample() const { return corpus_ ? corpus_->sample() : toy_stories_sample(seed_); }

  /// `amount` counts for text without an end alone: of other text all is written.
  void write(Split split,
             TokenAmount amount,
             const Tokenizer& tokenizer,
             const Progress& progress,
             TokenFileWriter& writer) const {
    if (corpus_) {
      const bool training = split == Split::training;
      write_text(
          training ? corpus_->training() : corpus_->evaluation(), tokenizer, progress, writer);
    } else {
      write_toy_stories(seed_, split, amount, tokenizer, progress, writer);
    }
  }

 private:
  uint64_t seed_;
  std::optional<Corpus> corpus_;
  std::string fingerprint_;
};

/// What `make` gives unless it throws an Error: a file in the cache that cannot be used is as good
/// as none.
template <class Make>
auto if_usable(const fs::path& path, Make make) -> std::optional<decltype(make())> {
  std::error_code unreadable;
  if (!fs::exists(path, unreadable)) return std::nullopt;
  try {
    return make();
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// One folder of the cache, under its lock.
class Preparation {
 public:
  Preparation(const config::Experiment& experiment,
              const Source& source,
              const fs::path& folder,
              const Progress& progress,
              bool check_content)
      : experiment_(experiment),
        source_(source),
        folder_(folder),
        progress_(progress),
        check_content_(check_content),
        lock_(FileLock::acquire(folder / "lock")) {
    remove_leftovers();
  }

  PreparedData run() {
    const int64_t train_rows = source_.is_endless() ? needed_train_rows() : 1;
    const int64_t evaluation_rows = experiment_.train.eval_rows;
    const Tokenizer tokenizer = make_tokenizer();
    require_kind(tokenizer);
    require_fitting_model(tokenizer);
    PreparedData prepared;
    if (experiment_.train.document_mask) prepared.document_start = document_start(tokenizer);
    if (is_padded()) prepared.pad_id = pad_id(tokenizer);
    prepared.tokenizer = folder_ / "tokenizer.json";
    prepared.data_fingerprint = source_.fingerprint();
    prepared.tokenizer_fingerprint = tokenizer.fingerprint();
    prepared.train.push_back(make_rows(Split::training, train_rows, tokenizer));
    prepared.evaluation.push_back(make_rows(Split::evaluation, evaluation_rows, tokenizer));
    describe();
    return prepared;
  }

 private:
  /// Leaves word of what the files were made from, for people who look at the cache.
  void describe() const {
    const nlohmann::json all = config::to_json(experiment_);
    const nlohmann::json words = {{"data", all.at("data")}, {"tokenizer", all.at("tokenizer")}};
    const std::string text = words.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    write_file_atomic(folder_ / "made_from.json", text + "\n");
  }

  bool is_padded() const { return experiment_.data.rows == config::RowKind::padded; }

  /// Only the holder of the lock writes here, so what lies aside was left by one that was killed.
  /// What is named .partial is work to go on with.
  void remove_leftovers() const {
    std::vector<fs::path> leftovers;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
      if (entry.path().filename().string().find(".tmp-") != std::string::npos) {
        leftovers.push_back(entry.path());
      }
    }
    if (error) throw system_error("read the folder '" + folder_.string() + "'", error.value());
    for (const fs::path& path : leftovers) remove_tree(path);
  }

  Tokenizer make_tokenizer() const {
    const fs::path path = folder_ / "tokenizer.json";
    const config::TokenizerConfig& config = experiment_.tokenizer;
    if (std::optional<Tokenizer> cached = cached_tokenizer(path)) return std::move(*cached);
    Tokenizer made = config.path.empty()
                         ? train_byte_level_bpe(source_.sample(), config.vocab_size, progress_)
                         : read_tokenizer_file(config.path);
    save_tokenizer(made, path);
    write_file_atomic(folder_ / "tokenizer.hash", hash_file(path));
    return made;
  }

  /// Nothing where the file is not as it was written: text would get other ids without a sign.
  std::optional<Tokenizer> cached_tokenizer(const fs::path& path) const {
    const auto written_hash = [&] { return read_file(folder_ / "tokenizer.hash"); };
    const std::optional<std::string> hash = if_usable(folder_ / "tokenizer.hash", written_hash);
    return if_usable(path, [&] {
      if (hash_file(path) != hash) throw Error("'" + shown_path(path) + "' was changed");
      return load_tokenizer(path);
    });
  }

  void require_kind(const Tokenizer& tokenizer) const {
    const std::string& kind = experiment_.tokenizer.kind;
    const bool in_characters = tokenizer.vocabulary().alphabet == Alphabet::characters;
    if (in_characters == (kind == "sentencepiece")) return;
    throw Error("tokenizer.kind is " + kind + ", but '" + shown_path(experiment_.tokenizer.path) +
                    "' is of BPE over " + (in_characters ? "characters" : "bytes"),
                {},
                std::string("set tokenizer.kind to ") +
                    (in_characters ? "sentencepiece" : "byte_level_bpe or tiktoken"));
  }

  /// No id may lie beyond the model's embedding.
  void require_fitting_model(const Tokenizer& tokenizer) const {
    const int model_size = experiment_.model.vocab_size;
    if (tokenizer.vocab_size() <= model_size) return;
    throw Error("the tokenizer has " + with_thousands(tokenizer.vocab_size()) +
                    " entries, but model.vocab_size is " + with_thousands(model_size),
                {},
                "set model.vocab_size to " + std::to_string(tokenizer.vocab_size()));
  }

  /// The id in front of each document, and nowhere else: text never becomes a special id.
  static int32_t document_start(const Tokenizer& tokenizer) {
    if (tokenizer.bos_id() >= 0) return tokenizer.bos_id();
    throw Error(
        "train.document_mask is true, but the tokenizer has no BOS to begin a document with",
        {},
        "set train.document_mask false, or give the tokenizer a token <|BOS|>");
  }

  /// What stands behind a document in its row. It is never scored, nor seen by what is, so that any
  /// id would do.
  static int32_t pad_id(const Tokenizer& tokenizer) {
    return std::max({tokenizer.pad_id() >= 0 ? tokenizer.pad_id() : tokenizer.eos_id(), 0});
  }

  /// Rows of training that the run consumes.
  int64_t needed_train_rows() const {
    const config::TrainConfig& train = experiment_.train;
    const int64_t steps = std::max<int64_t>(1, train.max_steps);
    const double tokens = static_cast<double>(steps) * train.batch_size * train.seq_len;
    if (tokens > max_generated_tokens) {
      throw Error("train.max_steps " + with_thousands(train.max_steps) + " of " +
                      with_thousands(int64_t{train.batch_size} * train.seq_len) +
                      " tokens each need more generated text than " +
                      with_thousands(static_cast<int64_t>(max_generated_tokens)) + " tokens",
                  {},
                  "lower train.max_steps, or train on text of your own with data.path");
    }
    return steps * train.batch_size;
  }

  /// Sees to it that the token file is there, and says how many rows of it to use.
  PreparedRows make_rows(Split split, int64_t wanted, const Tokenizer& tokenizer) const {
    const fs::path path =
        folder_ / (split == Split::training ? "train.tokens" : "evaluation.tokens");
    const TokenAmount amount = is_padded() ? TokenAmount{0, wanted}
                                           : TokenAmount{wanted * experiment_.train.seq_len + 1, 0};
    std::optional<TokenAmount> held = if_usable(path, [&] { return usable(path, tokenizer); });
    const bool enough =
        held && held->tokens >= amount.tokens && held->documents >= amount.documents;
    if (!held || (source_.is_endless() && !enough)) {
      held = write_tokens(split, amount, tokenizer, path);
    }
    const int64_t rows = is_padded()
                             ? held->documents
                             : rows_of(held->tokens, experiment_.train.seq_len, LastRow::whole);
    if (rows == 0) refuse_as_too_small(split, held->tokens);
    // Of text all training rows are used, so that an epoch is the whole text.
    const bool all = split == Split::training && !source_.is_endless();
    return {"", 1, path, all ? rows : std::min(rows, wanted)};
  }

  TokenAmount write_tokens(Split split,
                           TokenAmount amount,
                           const Tokenizer& tokenizer,
                           const fs::path& path) const {
    const bool training = split == Split::training;
    const std::string purpose = std::to_string(preparation_version) + " " + source_.fingerprint() +
                                (training ? " training" : " evaluation");
    TokenFileWriter writer(path, tokenizer.vocab_size(), tokenizer.fingerprint(), purpose);
    const std::string phase = training ? "writing training tokens" : "writing evaluation tokens";
    const Progress named = [&](double fraction, const std::string&) {
      if (progress_) progress_(fraction, phase);
    };
    source_.write(split, amount, tokenizer, named, writer);
    writer.finish();
    return {writer.size(), writer.documents()};
  }

  TokenAmount usable(const fs::path& path, const Tokenizer& tokenizer) const {
    const TokenFile file(path);
    if (file.tokenizer_fingerprint() != tokenizer.fingerprint()) {
      throw Error("'" + shown_path(path) + "' is of another tokenizer");
    }
    if (check_content_) file.check_content();
    return {file.size(), file.documents()};
  }

  [[noreturn]] void refuse_as_too_small(Split split, int64_t tokens) const {
    const config::DataConfig& data = experiment_.data;
    const bool training = split == Split::training;
    const int64_t needed = experiment_.train.seq_len + 1;
    std::string hint = "give more text";
    if (tokens > 1) hint += ", or set train.seq_len to at most " + std::to_string(tokens - 1);
    if (!training && data.evaluation_path.empty()) {
      hint += ", or raise data.held_out_fraction (" + shortest(data.held_out_fraction) + ")";
    }
    const bool other = !training && !data.evaluation_path.empty();
    throw Error("'" + shown_path(other ? data.evaluation_path : data.path) +
                    "' is too small: its " + (training ? "training" : "held-out") + " part has " +
                    with_thousands(tokens) + " tokens, one row of train.seq_len " +
                    with_thousands(experiment_.train.seq_len) + " needs " + with_thousands(needed),
                {},
                hint);
  }

  const config::Experiment& experiment_;
  const Source& source_;
  fs::path folder_;
  const Progress& progress_;
  bool check_content_;
  FileLock lock_;
};

/// Name of the folder of a tokenizer's files: how it is made, or the content that it is read from.
std::string tokenizer_folder(const config::TokenizerConfig& config) {
  const bool is_trained = config.kind == "byte_level_bpe";
  if (!is_trained && config.kind != "sentencepiece" && config.kind != "tiktoken") {
    throw Error("unknown tokenizer.kind '" + config.kind + "'",
                {},
                "byte_level_bpe, sentencepiece or tiktoken");
  }
  if (!is_trained && config.path.empty()) {
    throw Error("tokenizer.kind is " + config.kind + ", but tokenizer.path is empty",
                {},
                "forge reads such a tokenizer from a file, and trains byte_level_bpe");
  }
  const std::string version = "-v" + std::to_string(preparation_version);
  if (config.path.empty()) {
    return config.kind + "-" + std::to_string(config.vocab_size) + version;
  }
  if (!fs::is_regular_file(config.path)) {
    throw Error(
        "there is no file '" + config.path + "'",
        {},
        "tokenizer.path names a tokenizer.json, a SentencePiece model or a rank file of tiktoken");
  }
  return "file-" + hash_file(config.path) + version;
}

}  // namespace

PreparedData prepare(const config::Experiment& experiment,
                     const fs::path& cache_dir,
                     const Progress& progress,
                     bool check_content) {
  const Source source(experiment.data, progress);
  const fs::path folder = cache_dir / "data" /
                          (experiment.data.source + "-" + source.fingerprint()) /
                          tokenizer_folder(experiment.tokenizer);
  make_directories(folder);
  return Preparation(experiment, source, folder, progress, check_content).run();
}

}  // namespace forge::data
