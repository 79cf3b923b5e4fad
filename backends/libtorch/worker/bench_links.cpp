#include <algorithm>

#include "backends/libtorch/worker/bench.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/jobs.h"
#include "backends/libtorch/worker/process_group.h"
#include "core/base/error.h"

namespace forge::libtorch {
namespace {

constexpr double link_window_seconds = 0.1;  ///< that a window takes about
constexpr int link_windows = 5;

/// What a group does with a row of numbers, of which each process has or gets a part.
struct Exchange {
  const char* name;
  void (*run)(ProcessGroup& group, const at::Tensor& row, const at::Tensor& landing);
};

constexpr Exchange exchanges[] = {
    {"all_to_all",
     [](ProcessGroup& group, const at::Tensor& row, const at::Tensor& landing) {
       group.begin_exchange(row, landing).finish();
     }},
    {"all_gather",
     [](ProcessGroup& group, const at::Tensor& row, const at::Tensor& landing) {
       const int64_t size = row.numel() / group.count();
       group.begin_gather(landing.narrow(0, group.rank() * size, size), landing).finish();
     }},
};

/// Seconds of so many operations, of the process that needed longest.
double exchange_seconds(const Exchange& exchange,
                        ProcessGroup& group,
                        const at::Tensor& row,
                        const at::Tensor& landing,
                        int times) {
  group.of_first(0);  // all begin together
  Timer timer(row.device());
  timer.resume();
  for (int i = 0; i < times; ++i) exchange.run(group, row, landing);
  return group.largest(timer.pause());
}

worker::Result measured_link(const Exchange& exchange,
                             ProcessGroup& group,
                             int64_t bytes,
                             const at::Device& device) {
  const at::Tensor row = at::zeros({bytes}, at::TensorOptions(device).dtype(at::kByte));
  const at::Tensor landing = at::zeros_like(row);
  group.share(landing);                                // as training does
  exchange_seconds(exchange, group, row, landing, 1);  // connections and memory are new
  const double once = exchange_seconds(exchange, group, row, landing, 1);
  const int times = std::max(1, int(link_window_seconds / std::max(once, 1e-6)));
  std::vector<double> seconds;
  for (int window = 0; window < link_windows; ++window)
    seconds.push_back(exchange_seconds(exchange, group, row, landing, times) / times);
  const double moved = double(bytes) * (group.count() - 1) / group.count();
  return {{{"operation", exchange.name},
           {"bytes", bytes},
           {"seconds", median(seconds)},
           {"windows", seconds},
           {"bytes_per_second", moved / median(seconds)}}};
}

}  // namespace

void bench_links(const worker::Request& request,
                 const at::Device& device,
                 const EventWriter& events) {
  const std::unique_ptr<ProcessGroup> group = make_process_group(request, device);
  if (group->count() < 2)
    throw Error("a single process has no links to measure", "processes: 2 or more");
  for (const int64_t bytes : request.link_bytes) {
    if (bytes < group->count() || bytes % group->count() != 0) {
      throw Error(std::to_string(bytes) + " bytes have no equal parts for " +
                      std::to_string(group->count()) + " processes",
                  "a multiple of the number of processes");
    }
    for (const Exchange& exchange : exchanges)
      events.send(measured_link(exchange, *group, bytes, device));
  }
}

}  // namespace forge::libtorch
