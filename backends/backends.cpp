#include "backends/backends.h"

#include "backends/libtorch/backend.h"
#include "core/base/error.h"
#include "core/base/fs.h"

namespace forge::backends {

std::unique_ptr<run::Backend> make_backend(const std::string& name,
                                           const std::filesystem::path& program) {
  if (name == "libtorch") return std::make_unique<LibtorchBackend>(program, user_cache_dir());
  throw Error("unknown backend '" + name + "'", {}, "backends: libtorch");
}

}  // namespace forge::backends
