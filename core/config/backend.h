#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/check.h"
#include "core/config/experiment.h"
#include "core/config/layers.h"

namespace forge::config {

/// Names that no declaration can take.
inline constexpr const char* own_backend = "libtorch";
inline constexpr const char* external_backend = "external";  ///< the config has its command

/// A backend that somebody gave a name: a folder NAME with a file backend.yaml.
struct DeclaredBackend {
  std::string name;
  std::string description;
  std::filesystem::path file;
  ExternalConfig external;  ///< complete; the working directory is absolute
  Origins origins;          ///< of the keys external.*
  std::string problem;      ///< what is wrong in its file, which says nothing then
};

/// Folders whose sub-folders are backends, nearest first: of the project, of the workspace, and
/// beside the templates that came with forge. Any of the three may be empty.
std::vector<std::filesystem::path> backend_folders(const std::filesystem::path& project,
                                                   const std::filesystem::path& workspace_root,
                                                   const std::filesystem::path& library_dir);

/// All that are declared in the folders, by name; of one name the first. A folder without the file
/// is none.
std::vector<DeclaredBackend> declared_backends(const std::vector<std::filesystem::path>& folders);

/// Fills in `external` for a backend that is declared, where no later layer than the one that chose
/// it says otherwise, and checks it. Throws Error at the key: where nobody declared the backend,
/// `external` has no command, a command stands beside a backend that has no use for it, an
/// environment entry is not NAME=VALUE or the working directory is none.
void complete_backend(Draft& draft, const PathBases& bases);

}  // namespace forge::config
