#include "core/data/ordered_parallel.h"

#include <algorithm>
#include <deque>
#include <future>
#include <thread>

namespace forge::data {

void ordered_parallel(int64_t count,
                      const std::function<std::vector<int32_t>(int64_t)>& make,
                      const std::function<bool(const std::vector<int32_t>&)>& take) {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  // One call more than cores, so that none idles while a result is taken. A future of std::async
  // waits in its destructor: however this function is left, no call outlives it.
  std::deque<std::future<std::vector<int32_t>>> under_way;
  int64_t started = 0;
  while (true) {
    while (under_way.size() <= cores && (count < 0 || started < count)) {
      under_way.push_back(std::async(std::launch::async, make, started++));
    }
    if (under_way.empty()) return;
    const std::vector<int32_t> result = under_way.front().get();
    under_way.pop_front();
    if (!take(result)) return;
  }
}

}  // namespace forge::data
