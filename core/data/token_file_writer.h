#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace forge::data {

/// Writes a token file aside and gives it its name when finished; until then nothing of it is seen.
class TokenFileWriter {
 public:
  /// What is not finished is removed with the writer.
  TokenFileWriter(std::filesystem::path path, int vocab_size, std::string tokenizer_fingerprint);

  /// A writer whose work outlives it, also by kill -9: a later one of the same `purpose` (a text
  /// that says what is written from what) goes on after the last save(). It is found beside the
  /// file as <path>.partial, .partial.documents and .partial.json; what turns out damaged there is
  /// begun anew. The caller sees to it that there is one writer of a path at a time.
  TokenFileWriter(std::filesystem::path path,
                  int vocab_size,
                  std::string tokenizer_fingerprint,
                  const std::string& purpose);

  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  /// `documents` are the places within these ids where a document begins, ascending; a document
  /// may begin behind the last of them. Throws for an id that is negative or too large for the
  /// vocabulary's bytes an id.
  void append(const int32_t* ids, size_t count, const std::vector<int64_t>& documents = {});
  int64_t size() const;
  int64_t documents() const;

  /// Keeps what is written so far with a note of where to go on.
  void save(const std::string& note);
  /// That of the last save of the writer before; "" where there was none.
  const std::string& resumed_from() const;

  /// Writes documents and header, syncs, renames.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forge::data
