#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/run/run_folder.h"
#include "core/worker/messages.h"

/// What a request says beside the run's identity: a run that waited begins with what it was planned
/// with.
namespace forge::run {

/// Hash of the content of a source's file, as its header has it; of generated text, whose file
/// grows when a longer run needs more, of the beginning that this run reads. Throws Error for what
/// is no token file, or too short.
std::string tokens_hash(const worker::TokenSource& source, const nlohmann::json& experiment);

/// Hash of what a request says beside the run's identity and decides what is computed: the rows to
/// train on and to evaluate on, what is asked about them, and how weights of blocks in Python are
/// drawn. tokens_hash stands for a file; one that is not there counts as empty. Throws Error for
/// one that is no token file.
std::string inputs_hash(const worker::Request& request);

/// Throws Error where the request has other inputs than the run was planned with, or a file of
/// tokens is damaged: both were right when the run was planned, and it may have waited since. Of
/// files of more than 256 MiB the header alone is read.
void require_planned_inputs(const RunRecord& record, const worker::Request& request);

}  // namespace forge::run
