#pragma once

#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/data/rows/prepare.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

/// A run that began before goes on without the command that began it: from its folder alone.
namespace forge::run {

/// Token files of prepared data as a request names them: `files` is one of its lists.
std::vector<worker::TokenSource> token_sources(const data::PreparedData& prepared,
                                               const std::vector<data::PreparedRows>& files);

/// The request that the run was begun with. Throws Error for a run that has none, and for a request
/// that cannot be read or is not that of the run's identity: it would make another run. The runs
/// that it names, where they are not there any more, are those beside this one: the runs folder was
/// moved, or both were imported.
worker::Request read_request(const RunFolder& folder);

/// "'forge run train_x' writes it anew": the command that plans the run again. As it was typed,
/// where that cannot mean anything else: the run may have come from somebody else, who wrote it.
std::string rewriting_text(const RunRecord& record);

/// Writes into its request that the run's folder is at `path`, as it will be, or is. Where that
/// lies in the run's workspace the two are found together when they are moved or copied.
void remember_run_dir(const RunFolder& folder, const std::filesystem::path& path);

/// The folder of the run that a checkpoint which a request names belongs to; "" for other folders.
fs::path run_of_checkpoint(const fs::path& checkpoint);

/// The checkpoint of another run that the run continues, as its request says; "": none. A request
/// that is damaged says nothing: it is written anew, and the run makes the same steps from its
/// start.
fs::path continued_checkpoint(const RunFolder& folder);

/// Throws Error where the checkpoint that a run's request goes on from might be one that this user
/// alone may read, though somebody else wrote the request: the run's folder would show its weights
/// to them. It may lie in the run's own folder; else no link leads to it, and this user wrote the
/// request, or the checkpoint is that user's who did.
void require_own_beginning(const RunFolder& folder, const fs::path& checkpoint);

/// Throws Error where a checkpoint of forge's own backends has the weights alone, as in a pack that
/// was made without --checkpoints: no run goes on from it.
void require_optimizer_state(const fs::path& checkpoint, const std::string& backend);

/// The request of a run with token files that are there: where the cache has been emptied since the
/// run was planned, they are prepared anew, and request.json names them. Throws Error that names
/// the missing file where that cannot be done.
worker::Request restore_tokens(const RunFolder& folder,
                               worker::Request request,
                               const data::Progress& progress);

/// Throws Error where the files that an external backend's command names are not those of the run's
/// identity.
void require_same_program(const RunRecord& record, const config::Experiment& experiment);

/// Throws Error where this backend, on this machine, would make another run of it: its name,
/// device, threads or numerics are not those of the run's identity.
void require_same_backend(const RunRecord& record, const worker::BackendInfo& backend);

/// Writes the request anew with the run's folder and token files as they are now, and remembers
/// where its other files are (remember_places). Throws Error where the data is not that of the run
/// any more.
void refresh_request(const RunFolder& folder,
                     worker::Request request,
                     const data::PreparedData& data,
                     const std::string& workspace = "");

}  // namespace forge::run
