#pragma once

#include <filesystem>

#include "core/run/backend.h"

namespace forge::backends {

/// The worker that comes with forge, forge-worker-libtorch. This half of it links no Torch.
class LibtorchBackend : public run::Backend {
 public:
  /// `program` is forge's own path, from which the worker's is found; `cache_folder` keeps what
  /// `describe` learned, because a start of Torch costs half a second.
  LibtorchBackend(std::filesystem::path program, std::filesystem::path cache_folder)
      : program_(std::move(program)), cache_folder_(std::move(cache_folder)) {}

  std::string name() const override { return "libtorch"; }
  run::WorkerCommand command(const protocol::Request& request) const override;
  run::BackendInfo describe(run::Launcher& launcher,
                            const std::string& device,
                            int threads) const override;

  /// FORGE_WORKER_LIBTORCH where that is set; else beside the program, as in a build folder; else
  /// libexec/forge/ of the prefix in whose bin/ the program lies. Throws Error (exit code `failed`)
  /// naming the places.
  std::filesystem::path worker() const;

 private:
  std::filesystem::path cache_file(const protocol::Request& request) const;

  std::filesystem::path program_;
  std::filesystem::path cache_folder_;
};

}  // namespace forge::backends
