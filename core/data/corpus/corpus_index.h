#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/data/common.h"
#include "core/data/corpus/text_files.h"

namespace forge::data {

/// A file with bytes that are no UTF-8, as one in Latin-1 has. It can be trained on: a tokenizer of
/// bytes takes any. It is hardly what somebody wants.
struct InvalidText {
  std::string file;
  int64_t first = 0;  ///< offset of the first such byte, decompressed
  int64_t count = 0;  ///< of such bytes
};

/// "'old.txt' has 3 bytes that are not UTF-8, the first at byte 1,234; …"
std::string describe(const InvalidText& text);

/// Reads all text once and adds it to the hash: of files that are documents each behind a line
/// "<bytes before `cut`> of <bytes>". Throws Error at a NUL byte, which no text has. Returns the
/// files that are not UTF-8.
std::vector<InvalidText> hash_files(const TextFiles& files,
                                    TextPosition cut,
                                    Hasher& hasher,
                                    const Progress& progress);

/// Where the documents within files are.
struct RecordIndex {
  int64_t records = 0;
  std::vector<TextPosition> places;  ///< of every 4096th record, or of white space before it

  /// Where record `number` (0 … records) begins, or white space before it.
  TextPosition position_of(int64_t number, const TextFiles& files) const;
};
RecordIndex index_records(const TextFiles& files, const Progress& progress);

/// What a full read of a user's text finds: sizes, the train/eval split and a hash.
struct CorpusIndex {
  std::vector<int64_t> training_sizes;    ///< of the files of data.path, decompressed
  std::vector<int64_t> evaluation_sizes;  ///< of those of data.evaluation_path
  TextPosition training_end;
  TextPosition evaluation_begin;
  int64_t training_documents = -1;
  std::string fingerprint;
  std::vector<InvalidText> invalid;  ///< files that are not UTF-8
};

/// Names, sizes, times of change and inodes of the files of a text, and how it is split: whoever
/// writes to a file changes it.
std::string state_of(const config::DataConfig& config);

/// Index files of earlier runs, so that a run on 13 GB of text need not begin with reading them. An
/// index is valid for files of the same names, sizes, times of change and inodes, and for the same
/// split. Files that have just been written are not trusted to show a change in their times.
class CorpusIndexCache {
 public:
  /// Reads the files' state. With "" as `folder` nothing is loaded or stored. `now` as unix_time().
  CorpusIndexCache(const std::filesystem::path& folder,
                   const config::DataConfig& config,
                   double now = unix_time());

  /// Nothing, too, where the stored index is damaged.
  std::optional<CorpusIndex> load() const;
  /// Does nothing where a file has changed since the constructor or cannot be trusted, and where
  /// the index cannot be written: then the next run reads the text again.
  void store(const CorpusIndex& index) const;

 private:
  const config::DataConfig& config_;
  double now_;
  std::string state_;           ///< of the files, with all settings of the split
  std::filesystem::path file_;  ///< "": nothing is stored
};

}  // namespace forge::data
