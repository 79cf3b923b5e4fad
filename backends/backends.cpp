#include "backends/backends.h"

#include "backends/external/backend.h"
#include "backends/libtorch/backend.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/config/backend.h"

namespace forge::backends {

std::unique_ptr<run::Backend> make_backend(const config::Experiment& experiment,
                                           const std::filesystem::path& program) {
  if (experiment.backend == config::own_backend)
    return std::make_unique<LibtorchBackend>(program, user_cache_dir());
  return std::make_unique<ExternalBackend>(
      experiment.backend, experiment.external, user_cache_dir());
}

namespace {

ListedBackend ask(const config::Experiment& experiment,
                  const std::filesystem::path& program,
                  run::Launcher& launcher) {
  ListedBackend listed;
  listed.name = experiment.backend;
  try {
    const bool is_own = experiment.backend == config::own_backend;
    listed.info = is_own ? make_backend(experiment, program)->describe(launcher, "auto", 0)
                         : ExternalBackend(experiment.backend, experiment.external)  // as it is now
                               .describe(launcher, "auto", 0);
  } catch (const Error& problem) {
    listed.problem = problem.message();
    if (!problem.hint().empty()) listed.problem += "\n" + problem.hint();
  }
  return listed;
}

}  // namespace

std::vector<ListedBackend> list_backends(const std::vector<std::filesystem::path>& folders,
                                         const std::filesystem::path& program,
                                         run::Launcher& launcher) {
  std::vector<ListedBackend> list = {ask(config::Experiment(), program, launcher)};
  list[0].description = "forge's own, in C++";
  for (const config::DeclaredBackend& declared : config::declared_backends(folders)) {
    config::Experiment experiment;
    experiment.backend = declared.name;
    experiment.external = declared.external;
    list.push_back(ask(experiment, program, launcher));
    list.back().description = declared.description;
    list.back().declaration = declared.file;
  }
  return list;
}

}  // namespace forge::backends
