#include "backends/libtorch/worker/process_meeting.h"

#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include <chrono>
#include <cstring>

#include "core/base/text.h"

namespace forge::libtorch {
namespace {

constexpr const char* file_prefix = "file:";

/// Only this wait ends by itself: later ones must not.
void wait_for_all(c10d::Store& store, const worker::Processes& processes) {
  const auto name_of = [](int other) { return "process " + std::to_string(other); };
  std::vector<std::string> all;
  for (int other = 0; other < processes.count; ++other) all.push_back(name_of(other));
  store.set(name_of(processes.rank), std::vector<uint8_t>{1});
  store.wait(all, std::chrono::milliseconds(int64_t(processes.timeout_seconds * 1000)));
}

}  // namespace

MeetingPlace meet_processes(const worker::Processes& processes) {
  const std::string& where = processes.rendezvous;
  if (!starts_with(where, file_prefix)) {
    throw Error("processes cannot meet at '" + where + "'",
                "rendezvous: \"file:/path\", a file that does not exist yet");
  }
  try {
    auto store = c10::make_intrusive<c10d::FileStore>(where.substr(std::strlen(file_prefix)),
                                                      processes.count);
    wait_for_all(*store, processes);
    return store;
  } catch (const std::exception& problem) {
    throw lost_process("did not find the others", problem);
  }
}

LostProcess lost_process(const std::string& what, const std::exception& problem) {
  const std::string words = problem.what();
  return {"a process of this run " + what + ": " + words.substr(0, words.find('\n')),
          "the process that is gone says why",
          ExitCode::failed};
}

}  // namespace forge::libtorch
