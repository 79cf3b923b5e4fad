#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/weights/checkpoint.h"

namespace forge::weights {

/// Text of manifest.json for the state and the named files of `folder`, which are read for their
/// hashes:
///
///     {"manifest": {"version": 1, "state": {…}, "files": {"weights.safetensors": {"bytes": N,
///      "hash": "…"}, …}}, "hash": "…"}
///
/// The last hash is that of the inner object, so that damage to the manifest itself is found.
/// `on_bytes`, where given, is told of the files' bytes as they are hashed.
std::string manifest_text(const CheckpointState& state,
                          const std::filesystem::path& folder,
                          const std::vector<std::string>& files,
                          const OnBytes& on_bytes = {});

/// How far the files that a manifest lists are looked at, too: read, only their sizes, not at all.
enum class Content { checked, sizes, as_it_is };

/// Reads manifest.json of `folder` and checks it and, where asked to, every file that it lists.
/// Throws Error saying which is damaged or missing.
CheckpointState read_manifest(const std::filesystem::path& folder, Content content);

}  // namespace forge::weights
