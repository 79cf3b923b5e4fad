#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/common.h"
#include "core/data/corpus/text_files.h"
#include "core/data/tokenizer/bpe_trainer.h"

namespace forge::data {

struct InvalidText;

/// What a tokenizer is trained on. Changing it changes every trained tokenizer.
constexpr int64_t tokenizer_sample_bytes = int64_t{4} << 20;

/// Where indexes of texts are cached (corpus_index.h).
struct IndexFolder {
  IndexFolder(std::filesystem::path folder = {}, bool is_written = true)
      : path(std::move(folder)), writes(is_written) {}

  std::filesystem::path path;  ///< "": every text is read again
  bool writes;                 ///< whether an index that is not there is added
};

/// Text of the user's own, divided into a training and an evaluation part. It is read once for its
/// hash, in bounded memory. A CorpusIndex of it can be cached.
///
/// Where files are documents, the last data.held_out_fraction of all bytes is for evaluation; the
/// cut is made at a blank line where there is one nearby, else at a line's end, else between
/// characters. Where a file holds several documents, it is the last of that fraction of the
/// documents, at least one. With data.evaluation_path all of data.path is for training. Of the
/// training documents only the first data.training_fraction are used.
class Corpus {
 public:
  /// Throws Error where there is no text, or where a file is none (a NUL byte in it).
  explicit Corpus(const config::DataConfig& config,
                  const Progress& progress = {},
                  const IndexFolder& index = {});

  const TextRange& training() const { return training_; }
  const TextRange& evaluation() const { return evaluation_; }
  /// Hash of the text, of what its documents are, and of the places where it is divided.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Of training and evaluation; -1 where a file is a document.
  int64_t training_documents() const { return training_documents_; }
  /// Of its files when they were first looked at (state_of).
  const std::string& state() const { return state_; }
  /// Throws Error where a file has changed since: what was read then is not the text whose
  /// fingerprint this is.
  void require_unchanged() const;
  /// A sentence on each file that is not UTF-8.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Text to train a tokenizer on: all training text up to that many bytes, of more about that many
  /// in slices spread evenly over it. The same for the same text, compressed or not.
  NextDocument sample(int64_t bytes = tokenizer_sample_bytes) const;

 private:
  using InvalidTexts = std::vector<InvalidText>;
  InvalidTexts build_index(const config::DataConfig& config, const Progress& progress);
  InvalidTexts divide_files(const config::DataConfig& config, const Progress& progress);
  InvalidTexts divide_records(const config::DataConfig& config, const Progress& progress);

  TextRange training_;
  TextRange evaluation_;
  int64_t training_documents_ = -1;
  std::string fingerprint_;
  config::DataConfig config_;
  std::string state_;
  std::vector<std::string> warnings_;
};

/// All text of a file or folder.
TextRange all_text(const std::filesystem::path& path, const DocumentRule& rule);

/// Where to cut a text that is to be cut near `wanted` (0 … text.size()): behind the nearest blank
/// line within `range` bytes, else behind the nearest line's end there, else before a character.
size_t cut_near(std::string_view text, size_t wanted, size_t range);

}  // namespace forge::data
