#pragma once

#include <sys/wait.h>
#include <unistd.h>
#include <functional>
#include <iostream>

#include "tests/support/support.h"

namespace forge::tests {

/// In a process of a user whom a folder's rights keep out; root they do not. Its exit status: 0
/// where the action throws no forge::Error.
inline int as_other_user(const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 && ::setuid(nobody) != 0) ::_exit(2);
    const std::string error = error_of(action);
    std::cerr << error;
    ::_exit(error.empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// What the action says there: an Error's words, or what it returns.
inline std::string words_of_other_user(const std::function<std::string()>& action) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  as_other_user([&] {
    std::string said;
    const std::string error = error_of([&] { said = action(); });
    said += error;
    if (::write(ends[1], said.data(), said.size()) < 0) ::_exit(2);
  });
  ::close(ends[1]);
  std::string said;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::read(ends[0], bytes, sizeof bytes)) > 0;)
    said.append(bytes, static_cast<size_t>(got));
  ::close(ends[0]);
  return said;
}

}  // namespace forge::tests
