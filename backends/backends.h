#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/backend.h"
#include "core/config/experiment.h"
#include "core/config/resolve.h"
#include "core/worker/launcher.h"

namespace forge::backends {

/// Any program that follows the protocol (docs/PROTOCOL.md).
class ExternalBackend : public worker::Backend {
 public:
  /// `name` as the config's `backend` has it; "external" for one without a name of its own.
  /// `config` is complete: its working directory is absolute. Answers to `describe` are cached in
  /// `cache_folder` for an hour, or until a file beside the command's changes; "": it asks each
  /// time. A worker may be silent for `silence_seconds` before it answers.
  ExternalBackend(std::string name,
                  config::ExternalConfig config,
                  std::filesystem::path cache_folder = "",
                  double silence_seconds = config::TrainConfig().hung_after_seconds)
      : name_(std::move(name)),
        config_(std::move(config)),
        cache_folder_(std::move(cache_folder)),
        silence_seconds_(silence_seconds) {}

  std::string name() const override { return name_; }
  worker::WorkerCommand command(const worker::Request& request) const override;
  /// Throws Error where its hello has another name than the declared one; of a backend without one,
  /// where that name is one of forge's or not allowed (config::is_allowed_name).
  worker::BackendInfo describe(worker::Launcher& launcher,
                               const std::string& device,
                               int threads) const override;
  /// What the worker says of the experiment's blocks of one's own, by name, as the config keeps it:
  /// their code runs. Answers are cached by the code, its settings and the model. Throws Error with
  /// the lines of the user's file where it fails.
  std::map<std::string, nlohmann::json> describe_blocks(worker::Launcher& launcher,
                                                        const nlohmann::json& experiment) const;

 private:
  std::string name_;
  config::ExternalConfig config_;
  std::filesystem::path cache_folder_;
  double silence_seconds_;
};

/// The worker that comes with forge, forge-worker-libtorch. This class links no Torch.
class LibtorchBackend : public worker::Backend {
 public:
  /// `program` is forge's own path, from which the worker's is found. Answers to `describe` are
  /// cached in `cache_folder`, because a start of Torch costs half a second. A worker may be silent
  /// for `silence_seconds` before it answers.
  LibtorchBackend(std::filesystem::path program,
                  std::filesystem::path cache_folder,
                  double silence_seconds = config::TrainConfig().hung_after_seconds)
      : program_(std::move(program)),
        cache_folder_(std::move(cache_folder)),
        silence_seconds_(silence_seconds) {}

  std::string name() const override { return "libtorch"; }
  worker::WorkerCommand command(const worker::Request& request) const override;
  worker::BackendInfo describe(worker::Launcher& launcher,
                               const std::string& device,
                               int threads) const override;

  /// FORGE_WORKER_LIBTORCH where that is set; else beside the program, as in a build folder; else
  /// libexec/forge/ of the prefix in whose bin/ the program lies. Throws Error (exit code `failed`)
  /// naming the places.
  std::filesystem::path worker() const;

 private:
  std::filesystem::path program_;
  std::filesystem::path cache_folder_;
  double silence_seconds_;
};

/// Forgets the answers to `describe` that are cached in the folder: one of them was found untrue.
void forget_descriptions(const std::filesystem::path& cache_folder);

/// The backend of a resolved config: forge's own, or the external program that the config names.
/// `program` is forge's own path.
std::unique_ptr<worker::Backend> make_backend(const config::Experiment& experiment,
                                              const std::filesystem::path& program);

/// Gives the config's blocks of one's own their descriptions, as the backend pytorch of `folders`
/// says; does nothing for a config that has none. The blocks' code runs. Throws Error at
/// model.layers where it fails, or Python or torch is not here.
void describe_own_blocks(config::ResolvedConfig& resolved,
                         const std::vector<std::filesystem::path>& folders,
                         worker::Launcher& launcher);

/// A backend that a config can name.
struct ListedBackend {
  std::string name;
  std::string description;
  std::filesystem::path declaration;        ///< "": it comes with forge
  std::optional<worker::BackendInfo> info;  ///< none: it cannot be used here
  std::string problem;                      ///< why not
  bool was_asked = true;                    ///< false: its program was not started
};

/// libtorch and all that are declared in `folders`. The programs of those that `may_start` allows
/// are started and asked what they are.
std::vector<ListedBackend> list_backends(
    const std::vector<std::filesystem::path>& folders,
    const std::filesystem::path& program,
    worker::Launcher& launcher,
    const std::function<bool(const config::DeclaredBackend&)>& may_start);

}  // namespace forge::backends
