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

/// Reads all text once and adds it to the hash: of files that are documents each behind a line
/// "<bytes before `cut`> of <bytes>". Throws Error at a NUL byte, which no text has.
void hash_files(const TextFiles& files, TextPosition cut, Hasher& hasher, const Progress& progress);

/// Where the documents within files are.
struct RecordIndex {
  int64_t records = 0;
  std::vector<TextPosition> places;  ///< of every 4096th record, or of white space before it

  /// Where record `number` (0 … records) begins, or white space before it.
  TextPosition position_of(int64_t number, const TextFiles& files) const;
};
RecordIndex index_records(const TextFiles& files, const Progress& progress);

/// What reading all of a user's text has told.
struct Survey {
  std::vector<int64_t> training_sizes;    ///< of the files of data.path, decompressed
  std::vector<int64_t> evaluation_sizes;  ///< of those of data.evaluation_path
  TextPosition training_end;
  TextPosition evaluation_begin;
  int64_t training_documents = -1;
  std::string fingerprint;
};

/// A survey from an earlier time, so that a run on 13 GB of text need not begin with reading them.
/// It holds for files of the same names, sizes, times of change and inodes, and for the same
/// division; files that have just been written are not trusted to show a change in their times.
class KeptSurvey {
 public:
  /// Takes the files' state. Where `folder` is "" nothing is found or kept. `now` as unix_time().
  KeptSurvey(const std::filesystem::path& folder,
             const config::DataConfig& config,
             double now = unix_time());

  /// Nothing too where what was kept is damaged.
  std::optional<Survey> find() const;
  /// Does nothing where a file has changed since the constructor, or cannot be trusted; a survey
  /// that cannot be kept costs time, no more.
  void keep(const Survey& survey) const;

 private:
  const config::DataConfig& config_;
  double now_;
  std::string state_;           ///< of the files, with all that divides them
  std::filesystem::path file_;  ///< "" where nothing is kept
};

}  // namespace forge::data
