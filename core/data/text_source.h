#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/config/experiment.h"
#include "core/data/bpe_trainer.h"
#include "core/data/corpus/corpus.h"
#include "core/data/progress.h"
#include "core/data/split.h"
#include "core/data/token_stream.h"

namespace forge::data {

/// The text that one source of an experiment names: generated, or files of the user's own.
class TextSource {
 public:
  /// Reads the user's files once, for their hash, or relies on what `surveys` keeps of them (see
  /// Corpus). Throws Error where data.source is none that holds text, and where the text is missing
  /// or not text.
  TextSource(const config::DataConfig& config,
             const Progress& progress,
             const std::filesystem::path& surveys = {});

  bool is_endless() const { return !corpus_; }
  /// Of the text, what its documents are, and its split.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Name of its folder in the cache: "text-<fingerprint>".
  std::string folder_name() const { return kind_ + "-" + fingerprint_; }

  /// The text that a tokenizer is trained on, about so many bytes.
  NextDocument sample(int64_t bytes = tokenizer_sample_bytes) const;

  /// `amount` counts for text without an end alone: of other text all is written.
  void write(Split split,
             TokenAmount amount,
             const Tokenizer& tokenizer,
             const Progress& progress,
             TokenFileWriter& writer) const;

 private:
  GeneratedText texts_of(Split split) const;

  std::string kind_;
  std::optional<Corpus> corpus_;
  std::function<std::string(Split, uint64_t)> generated_;  ///< where there is no corpus
  std::string fingerprint_;
};

}  // namespace forge::data
