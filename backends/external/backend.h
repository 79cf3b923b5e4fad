#pragma once

#include <filesystem>
#include <string>

#include "core/config/experiment.h"
#include "core/run/backend.h"

namespace forge::backends {

/// Anybody's program that speaks the protocol (docs/PROTOCOL.md).
class ExternalBackend : public run::Backend {
 public:
  /// `name` as the config's `backend` has it; "external" for one without a name of its own.
  /// `config` is complete: its working directory is absolute. `cache_folder` keeps what `describe`
  /// learned for an hour, or until a file beside the command's changes; "": it asks each time.
  ExternalBackend(std::string name,
                  config::ExternalConfig config,
                  std::filesystem::path cache_folder = "")
      : name_(std::move(name)),
        config_(std::move(config)),
        cache_folder_(std::move(cache_folder)) {}

  std::string name() const override { return name_; }
  run::WorkerCommand command(const protocol::Request& request) const override;
  /// Its hello has the name of the declaration, where there is one; else the worker's own. Throws
  /// Error where that name is one of forge's or would be none for a folder.
  run::BackendInfo describe(run::Launcher& launcher,
                            const std::string& device,
                            int threads) const override;

 private:
  run::BackendInfo ask(run::Launcher& launcher, const protocol::Request& request) const;

  std::string name_;
  config::ExternalConfig config_;
  std::filesystem::path cache_folder_;
};

}  // namespace forge::backends
