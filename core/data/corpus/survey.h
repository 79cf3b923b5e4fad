#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/data/corpus/text_files.h"
#include "core/data/progress.h"

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

}  // namespace forge::data
