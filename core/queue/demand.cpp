#include "core/queue/demand.h"

#include <algorithm>

#include "core/base/text.h"

namespace forge::queue {

Demand demand_of(const protocol::Environment& environment,
                 const std::string& device,
                 int jobs,
                 int cores) {
  if (environment.device_type == "cpu") {
    const int units = std::max(1, cores);
    return {{{"cpu", units}}, std::clamp(environment.threads, 1, units)};
  }
  Demand demand;
  for (const std::string& name : environment.devices) {
    const bool chosen = device.find(':') == std::string::npos || device == name;
    if (chosen && starts_with(name, environment.device_type))
      demand.devices.push_back({name, gpu_units});
  }
  if (demand.devices.empty()) demand.devices.push_back({environment.device_type, gpu_units});
  const int devices = static_cast<int>(demand.devices.size());
  const int on_each = std::max(1, (jobs + devices - 1) / devices);
  demand.units = std::max(1, gpu_units / on_each);
  return demand;
}

int threads_for(int jobs, int cores) { return std::max(1, cores / std::max(1, jobs)); }

}  // namespace forge::queue
