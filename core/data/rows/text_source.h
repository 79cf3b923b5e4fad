#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/config/experiment.h"
#include "core/data/common.h"
#include "core/data/corpus/corpus.h"
#include "core/data/corpus/text_files.h"
#include "core/data/rows/token_file.h"
#include "core/data/tokenizer/bpe_trainer.h"
#include "core/data/tokenizer/tokenizer.h"

namespace forge::data {

/// The least to be written of a text without an end.
struct TokenAmount {
  int64_t tokens = 0;
  int64_t documents = 0;
};

/// Resumable writers save their work this often: about a second's work of two cores.
constexpr int64_t tokens_between_saves = int64_t{8} << 20;

/// Text `index` of an endless sequence. Any number of threads may call one.
using GeneratedText = std::function<std::string(uint64_t index)>;

/// Appends the tokens of whole generated texts, from text 0 on or where the writer resumes,
/// until the amount is there. Runs on all cores. Reports the phase "tokenizing".
void write_generated(const GeneratedText& text_of,
                     TokenAmount amount,
                     const Tokenizer& tokenizer,
                     const Progress& progress,
                     TokenFileWriter& writer,
                     int64_t save_every = tokens_between_saves);

/// Appends the tokens of the documents of a range, each with BOS in front, from where the writer
/// goes on. Text is read as it is needed and encoded on all cores, long documents in parts; the ids
/// are those of the whole.
void write_text(const TextRange& range,
                const Tokenizer& tokenizer,
                const Progress& progress,
                TokenFileWriter& writer,
                int64_t save_every = tokens_between_saves);

/// The cache's name for a text: "text-<fingerprint>".
std::string text_folder_name(const std::string& kind, const std::string& fingerprint);

/// The text that one source of an experiment names: generated, or files of the user's own.
class TextSource {
 public:
  /// Reads the user's files once, for their hash, or relies on what `index` keeps of them
  /// (see Corpus). Throws Error where data.source is none that holds text, and where the text is
  /// missing or not text.
  TextSource(const config::DataConfig& config,
             const Progress& progress,
             const IndexFolder& index = {});

  /// A user's text that is gone, of which the cache has the tokens. `config` names it.
  static TextSource gone(const config::DataConfig& config, std::string fingerprint);

  bool is_endless() const { return bool(generated_); }
  /// Of the text, what its documents are, and its split.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Of the user's files, so that what a killed process wrote of others is not gone on with; "" of
  /// generated text.
  std::string state() const { return corpus_ ? corpus_->state() : ""; }
  /// What is to be said of the user's files, a sentence each.
  std::vector<std::string> warnings() const {
    return corpus_ ? corpus_->warnings() : std::vector<std::string>();
  }
  std::string folder_name() const { return text_folder_name(kind_, fingerprint_); }

  /// The text that a tokenizer is trained on, about that many bytes: the same whatever a run needs.
  /// At its end throws Error as Corpus::require_unchanged does.
  NextDocument sample(int64_t bytes = tokenizer_sample_bytes) const;

  /// `amount` counts for text without an end alone: of other text all is written. Throws Error as
  /// Corpus::require_unchanged does.
  void write(Split split,
             TokenAmount amount,
             const Tokenizer& tokenizer,
             const Progress& progress,
             TokenFileWriter& writer) const;

 private:
  TextSource() = default;
  GeneratedText texts_of(Split split) const;
  /// Throws Error for a text that is gone.
  void require_there() const;

  std::string kind_;
  config::DataConfig config_;  ///< of a text that is gone
  std::optional<Corpus> corpus_;
  std::function<std::string(Split, uint64_t)> generated_;  ///< where there is no corpus
  std::string fingerprint_;
};

}  // namespace forge::data
