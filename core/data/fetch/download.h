#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/data/common.h"

namespace forge::data {

/// SHA-256 of a file as 64 hexadecimal digits. Reports the phase "verifying SHA-256".
std::string sha256_of(const std::filesystem::path& path, const Progress& progress = {});

/// A file of the network whose content is known beforehand.
struct RemoteFile {
  std::string url;  ///< http or https
  int64_t bytes = 0;
  std::string sha256;  ///< 64 hexadecimal digits
};

/// Gets a file by HTTP into `target`, streaming, and checks its size and hash. What was got lies in
/// <target>.partial until all of it is there: a later call asks for the rest (Range), or for all of
/// it where the server knows no ranges. A connection that breaks off is taken up again as long as
/// each attempt brings bytes. A target that is there is only checked. Throws Error where it cannot
/// be had, saying which file to put where, and where what came is not what was expected.
void download(const RemoteFile& file,
              const std::filesystem::path& target,
              const Progress& progress);

}  // namespace forge::data
