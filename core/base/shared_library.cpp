#include "core/base/shared_library.h"

#include <dlfcn.h>

#include "core/base/error.h"

namespace forge {

SharedLibrary::SharedLibrary(const char* file, const char* package)
    : file_(file), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  throw Error("the library " + file_ + " is not there",
              std::string("install it: apt-get install ") + package,
              ExitCode::failed);
}

SharedLibrary::Address SharedLibrary::find(const char* name) const {
  if (void* address = ::dlsym(handle_, name)) return {address};
  throw Error(file_ + " has no function '" + name + "'", ExitCode::failed);
}

}  // namespace forge
