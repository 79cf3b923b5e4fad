#pragma once

#include "core/data/prepare.h"
#include "core/run/backend.h"
#include "core/run/run_folder.h"

namespace forge::run {

/// A run that began before goes on without the command that began it: from its folder alone.

/// The request that the run was begun with. Throws Error for a run that has none (a model that was
/// imported), or whose request cannot be read.
protocol::Request request_of(const RunFolder& folder);

/// Throws Error where this backend, on this machine, would make another run of it: its name,
/// device, threads or numerics are not those of the run's identity.
void require_same_backend(const RunRecord& record, const BackendInfo& backend);

/// Writes the request anew with the run's folder and token files as they are now. Throws Error
/// where the data is not that of the run any more.
void renew_request(const RunFolder& folder,
                   protocol::Request request,
                   const data::PreparedData& data);

}  // namespace forge::run
