#include "core/fetch/shared_library.h"

#include <dlfcn.h>

#include "core/base/error.h"

namespace forge::fetch {

SharedLibrary::SharedLibrary(const char* file, const char* package)
    : file_(file), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  throw Error("the library " + file_ + " is not there",
              {},
              std::string("install it: apt-get install ") + package,
              ExitCode::failed);
}

void* SharedLibrary::symbol(const char* name) const {
  if (void* found = ::dlsym(handle_, name)) return found;
  throw Error(file_ + " has no function '" + name + "'", {}, "", ExitCode::failed);
}

}  // namespace forge::fetch
