#pragma once

#include <string>
#include <vector>

#include "core/protocol/messages.h"
#include "core/queue/lease.h"

namespace forge::queue {

/// Which devices a run may have, any of them, and how many units of it.
struct Demand {
  std::vector<Device> devices;
  int units = 1;
};

/// Of a run that its backend would run on `environment`. On a CPU of `cores` it needs as many as it
/// has threads. A GPU it has for itself, unless `jobs` runs at once are asked for where there are
/// fewer GPUs (0: not asked for): then they share them evenly. `device` is what the user chose:
/// "cuda:1" is that one alone, anything else any device of the environment's type.
Demand demand_of(const protocol::Environment& environment,
                 const std::string& device,
                 int jobs,
                 int cores);

/// CPU threads for each of `jobs` runs at once on `cores`: an even share, at least one.
int threads_for(int jobs, int cores);

}  // namespace forge::queue
