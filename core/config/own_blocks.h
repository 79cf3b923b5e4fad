#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/config/check.h"
#include "core/config/resolve.h"

/// Blocks of one's own in a config (docs/OWN_BLOCKS.md): Python files that model.layers names.
namespace forge::config {

/// The backend that computes them.
inline constexpr const char* own_block_backend = "pytorch";

/// Folders of the files, nearest first: blocks/ of the project and of the workspace.
std::vector<std::filesystem::path> own_block_folders(const std::filesystem::path& project,
                                                     const std::filesystem::path& workspace_root);

/// Reads the file of each block that model.layers names and that is no kind of forge's, into
/// model.blocks. A section of a block that nothing names is refused, or dropped where a later layer
/// changed model.layers.
void read_own_blocks(Draft& draft, const PathBases& bases, const ProblemSink& on_problem);

/// A config with such a block trains with the backend pytorch, unless it names another declared
/// one. Throws Error where the command line, or a later layer than that of model.layers, asks for
/// libtorch.
void choose_backend_of_own_blocks(Draft& draft);

/// Whether the model has a block of one's own.
bool has_own_blocks(const ModelConfig& model);

/// Gives each block its description, by name. Throws Error where one is none, and where weights of
/// a layer that are not the block's are called as its own are.
void set_descriptions(ResolvedConfig& resolved, const std::map<std::string, nlohmann::json>& found);

/// What of the blocks in an experiment's JSON decides its numbers: their settings, and in place of
/// the source its hash. The place of the file and the description go.
void reduce_own_blocks(nlohmann::json& experiment);

/// The value of a config's key as people are shown it: of a block's source its size and hash.
nlohmann::json shown_leaf(const std::string& path, const nlohmann::json& value);

/// Whether the key is not shown to people: a block's description.
bool is_hidden_leaf(const std::string& path);

}  // namespace forge::config
