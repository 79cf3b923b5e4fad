#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/config/experiment.h"

namespace forge::run {

/// Whether a program's folder is called as those of forge's own backends, whose programs no run
/// records.
bool is_called_as_forges_own(const std::filesystem::path& working_directory);

/// The files that an external backend's command names, "worker.py" or "--model=/home/ada/net.py",
/// in its order: those of its working folder, and of other folders those of up to 16 MiB but for
/// the program that it starts, "/usr/bin/python3".
std::vector<std::filesystem::path> program_files(const config::ExternalConfig& external);

/// Stands in a run's identity for the program of an external backend: a hash of these files, so
/// that programs of one name in two folders are two programs and an edited one is another. A
/// command that names none, "python3 -m mine", is known by its folder. "" for libtorch. Throws
/// Error for a file that cannot be read.
std::string program_hash(const config::ExternalConfig& external);

/// The hash and when its files were last changed: a file that was edited and put back makes another
/// state. Throws Error as program_hash does.
std::string program_state(const config::ExternalConfig& external);

}  // namespace forge::run
