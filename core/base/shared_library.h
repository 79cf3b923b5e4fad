#pragma once

#include <string>

namespace forge {

/// A library that is loaded when it is first needed: what hardly any command uses must not make the
/// start of all of them slower. It stays loaded.
class SharedLibrary {
 public:
  /// Throws Error naming the Debian package where the library is not installed.
  SharedLibrary(const char* file, const char* package);

  /// A function's address, which becomes a pointer of the type that it is assigned to.
  struct Address {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };
  /// Throws Error where the library has no such function.
  Address find(const char* name) const;

 private:
  std::string file_;
  void* handle_;
};

}  // namespace forge
