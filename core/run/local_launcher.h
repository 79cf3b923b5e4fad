#pragma once

#include "core/run/launcher.h"

namespace forge::run {

/// Starts programs on this machine. Each leads a process group of its own, so that Ctrl-C in a
/// terminal does not reach it, inherits no descriptor but its three streams, and is killed by the
/// kernel when the thread that started it ends, however that comes about.
class LocalLauncher : public Launcher {
 public:
  std::unique_ptr<RunningWorker> start(const Launch& launch) override;
};

}  // namespace forge::run
