#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/layers.h"
#include "core/data/rows/prepare.h"
#include "core/run/run_folder.h"
#include "core/worker/launcher.h"
#include "core/worker/messages.h"

namespace forge::run {

/// Token files of prepared data as a request names them: `files` is one of its lists.
std::vector<worker::TokenSource> token_sources(const data::PreparedData& prepared,
                                               const std::vector<data::PreparedRows>& files);

/// Throws Error at the place of the first config key whose value the backend said that it cannot
/// do, naming the values that it can. A backend that said nothing of the key, or nothing at all, is
/// taken at its word when it is asked to train.
void require_supported(const nlohmann::json& experiment,
                       const config::Origins& origins,
                       const worker::BackendInfo& backend);

/// Throws Error where the backend said that it does not do such a job.
void require_job(worker::Job job, const worker::BackendInfo& backend);

/// Stands in what a backend supports for training by several processes. It limits no value.
constexpr const char* parallel_key = "parallel";

/// Throws Error at the place of parallel.processes where the backend did not say that it trains by
/// several processes, and the config asks for more than one.
void require_processes(const config::Experiment& experiment,
                       const config::Origins& origins,
                       const worker::BackendInfo& backend);
/// Whether the backend said so: `parallel` of its `supports`.
bool trains_by_several_processes(const worker::BackendInfo& backend);

/// As require_supported, for a job that only reads a model: of its config the keys below `model`
/// and train.precision count, whatever it takes to train it.
void require_readable(worker::Job job,
                      const config::Experiment& experiment,
                      const worker::BackendInfo& backend);

/// Throws Error where the device that the user asked for is not one that the backend would run on:
/// its run could not go on. "auto" and "" are any.
void require_device(const std::string& device, const worker::BackendInfo& backend);

/// A run that began before goes on without the command that began it: from its folder alone.

/// The request that the run was begun with. Throws Error for a run that has none, and for a request
/// that cannot be read or is not that of the run's identity: it would make another run. The runs
/// that it names, where they are not there any more, are those beside this one: the runs folder was
/// moved, or both were imported.
worker::Request read_request(const RunFolder& folder);

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
