#pragma once

#include <string_view>

#include "core/base/fs.h"

namespace forge {

/// A file that the user names for what a command writes. One that is new or a regular file gets the
/// whole or, where anything fails, stays as it was. A device, a pipe, or what a link leads to, such
/// as /dev/stdout, is written into and never replaced.
class OutputFile {
 public:
  /// Throws Error naming the file where it cannot be written.
  explicit OutputFile(fs::path path);
  /// Without `finish` what was written to a new or regular file is thrown away.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view text);
  void finish();

 private:
  fs::path path_;
  fs::path aside_;  ///< what becomes the file; "": it is written into
  FileDescriptor file_;
};

/// The file with this text and no other.
void write_output_file(const fs::path& path, std::string_view text);

}  // namespace forge
