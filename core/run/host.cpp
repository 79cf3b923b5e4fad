#include "core/run/host.h"

#include <unistd.h>

namespace forge::run {

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace forge::run
