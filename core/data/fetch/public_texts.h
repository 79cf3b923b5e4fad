#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/data/fetch/download.h"

namespace forge::data {

/// A text that anybody can get.
struct PublicText {
  std::string name;  ///< also of its folder
  std::string description;
  std::vector<RemoteFile> files;
  /// Of an archive: what is taken out of it, and under which names it is kept.
  std::vector<std::pair<std::string, std::string>> members;
};

const std::vector<PublicText>& public_texts();
/// Throws Error with near misses where there is none of that name.
const PublicText& find_public_text(const std::string& name);

/// Sees to it that the text lies in `folder` and returns its files. `mirror`, where it is not
/// empty, is the URL of a folder to get them from by their names instead. Throws Error as download
/// does.
std::vector<std::filesystem::path> get_public_text(const PublicText& text,
                                                   const std::filesystem::path& folder,
                                                   const std::string& mirror,
                                                   const Progress& progress);

}  // namespace forge::data
