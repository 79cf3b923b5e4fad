#pragma once

#include <string>

namespace forge::fetch {

/// A library that is loaded when it is first needed: what hardly any command uses must not make the
/// start of all of them slower. It stays loaded.
class SharedLibrary {
 public:
  /// Throws Error naming the Debian package where the library is not installed.
  SharedLibrary(const char* file, const char* package);

  /// A function by its name; `function` of its declaration in the library's header.
  template <class Function>
  void load(const char* name, Function*& function) const {
    function = reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  std::string file_;
  void* handle_;
};

}  // namespace forge::fetch
