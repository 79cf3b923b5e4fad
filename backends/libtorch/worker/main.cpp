#include <iostream>
#include <optional>

#include "backends/libtorch/torch_compat.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/divergence.h"
#include "backends/libtorch/worker/events.h"
#include "backends/libtorch/worker/jobs.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/process_group.h"
#include "core/base/error.h"
#include "core/base/text.h"

// forge-worker-libtorch: reads a request line on stdin, writes one JSON event a line on stdout.
// docs/PROTOCOL.md describes both. Messages for people go to stderr.

namespace forge::libtorch {
namespace {

/// Raised by hand in the commit that may change a bit of any loss: runs made before it are other
/// runs.
constexpr int numerics_version = 5;

using worker::exit_done;
using worker::exit_failed;
using worker::exit_stopped;
using worker::exit_storage;
using worker::exit_wrong_request;

int run_job(const worker::Request& request, const at::Device& device, const EventWriter& events) {
  switch (request.job) {
    case worker::Job::describe: events.send(describe_support(device)); return exit_done;
    case worker::Job::train: return train(request, device, events) ? exit_done : exit_stopped;
    case worker::Job::bench: bench(request, device, events, std::cin); return exit_done;
    case worker::Job::bench_ops: bench_operations(request, device, events); return exit_done;
    case worker::Job::bench_links: bench_links(request, device, events); return exit_done;
    case worker::Job::evaluate:
      events.send(evaluate_model(request, device, events));
      return exit_done;
    case worker::Job::logits: events.send(write_logits(request, device)); return exit_done;
    case worker::Job::generate: events.send(generate(request, device, events)); return exit_done;
    case worker::Job::describe_blocks:
      throw Error("libtorch computes no blocks in Python", "the backend pytorch does");
  }
  return exit_wrong_request;
}

/// What is known of a request while it is served.
struct Serving {
  std::optional<worker::Request> request;
  std::optional<at::Device> device;

  /// The run was planned on a GPU that has been lost since, or is being reset.
  bool lacks_gpu() const { return request && !device && starts_with(request->device, "cuda"); }
};

/// Says which of several processes this one is; returns its device.
std::string take_rank(worker::Request& request) {
  if (!request.processes) return request.device;
  worker::Processes& processes = *request.processes;
  processes.rank = rank_by_environment();
  const auto rank = static_cast<size_t>(processes.rank);
  return rank < processes.devices.size() ? processes.devices[rank] : request.device;
}

int serve(const EventWriter& events, Serving& serving) {
  worker::Hello hello;
  hello.backend = "libtorch";
  hello.backend_version = "0.1.0";
  hello.numerics_version = numerics_version;
  hello.saves_on_request = true;
  events.send(hello);
  listen_for_stop();  // before there is another thread
  std::string line;
  if (!std::getline(std::cin, line))
    throw Error("no request on stdin", "one JSON line; see docs/PROTOCOL.md");
  serving.request = worker::request_from_line(line);
  serving.device = choose_device(take_rank(*serving.request), serving.request->threads);
  limit_memory_by_environment(*serving.device);
  events.send(describe_environment(*serving.device));
  return run_job(*serving.request, *serving.device, events);
}

int exit_status_of(const Error& error) {
  switch (error.exit_code()) {
    case ExitCode::usage: return exit_wrong_request;
    case ExitCode::storage: return exit_storage;
    default: return exit_failed;
  }
}

int fail(const EventWriter& events, const worker::Failed& failed, int exit_code) {
  std::cerr << "error: " << failed.message << "\n";
  events.send(failed);
  return exit_code;
}

worker::Failed failure_of(const c10::Error& error, const Serving& serving) {
  worker::Failed failed;
  failed.message = error.what_without_backtrace();
  if (torch_compat::is_out_of_memory(error)) failed.hint = help_against_shortage();
  // If memory ran out before the job began, other processes hold it.
  failed.retry = serving.device ? is_retryable(error, *serving.device)
                                : torch_compat::is_device_error(error) ||
                                      torch_compat::is_out_of_memory(error);
  return failed;
}

int run() {
  const EventWriter events(take_over_stdout(), rank_by_environment() == 0);
  keep_freed_memory();
  install_counting_allocator();
  Serving serving;
  try {
    return serve(events, serving);
  } catch (const LostProcess& error) {
    worker::Failed failed{error.message(), "", error.hint(), true};
    failed.lost = true;
    return fail(events, failed, exit_failed);
  } catch (const Diverged& error) {
    worker::Failed failed{error.message(), "", error.hint()};
    failed.diverged = true;
    return fail(events, failed, exit_failed);
  } catch (const Error& error) {
    return fail(
        events, {error.message(), "", error.hint(), serving.lacks_gpu()}, exit_status_of(error));
  } catch (const c10::Error& error) {
    return fail(events, failure_of(error, serving), exit_failed);
  } catch (const std::exception& error) {
    return fail(events, {error.what(), "", ""}, exit_failed);
  }
}

}  // namespace
}  // namespace forge::libtorch

int main() { return forge::libtorch::run(); }
