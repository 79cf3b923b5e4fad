#pragma once

#include <exception>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "backends/libtorch/worker/process_group.h"

namespace forge::libtorch {

/// What the processes of a run share before they can speak: keys and values in a file.
using MeetingPlace = c10::intrusive_ptr<c10d::Store>;

/// The place that a request's processes name, where all of them are. Waits as long as they allow.
/// Throws Error for a place that is no file, LostProcess where the others do not come.
MeetingPlace meet_processes(const worker::Processes& processes);

/// "a process of this run lost another one: …", with a library's words.
LostProcess lost_process(const std::string& what, const std::exception& problem);

}  // namespace forge::libtorch
