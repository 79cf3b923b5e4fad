#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "core/base/files.h"

namespace forge {

/// How this process waits for others: what it says meanwhile, and what ends the wait.
struct Waiting {
  std::function<void(const std::string& text)> say;  ///< "waiting for …"; from any thread
  /// Times that the user has asked the program to stop. A wait that sees one more throws Error.
  std::function<int()> interrupts;
};

/// Sets it for the whole process, before there are threads. Without it waits are silent.
void set_waiting(Waiting waiting);
/// Says it by that.
void say_waiting(const std::string& text);

/// The interrupts so far, and the Error where there are more than `before`.
int interrupts_so_far();
void require_uninterrupted(int before);

/// How often something is tried again: after so many seconds, then after twice as many, …
struct Patience {
  double first_wait = 0;
  int tries_again = 0;

  constexpr double seconds() const { return first_wait * ((1 << tries_again) - 1); }  ///< in all
};

/// With a disk that is full, or a folder that is away, for a moment: 3.1 seconds.
constexpr Patience moment = {0.1, 5};

/// Calls `action`, and again where it finds a disk full, or a folder away for a moment: a disk that
/// others write to may have room the next moment. Throws the last Error, and at once any other.
/// While it waits it calls `goes_on` many times a second, where given: false ends the wait.
void call_patiently(const Patience& patience,
                    const std::function<bool()>& goes_on,
                    const std::function<void()>& action);

/// The lock on a file, signed for those who wait (FileLock::sign); none where another has held it
/// for so many seconds.
std::optional<FileLock> try_lock_signed(const std::filesystem::path& file, double seconds = 0);

/// Process id of who holds it, where that is a process of this machine that has signed it; else 0.
int local_holder(const std::filesystem::path& file);

/// Waits for that lock. After a second, and then many times a second, it calls `waiting`
/// with the process that holds it: "process 4711 on node3".
FileLock lock_signed(const std::filesystem::path& file,
                     const std::function<void(const std::string& holder)>& waiting);

/// The same for the file "lock" of a folder, which it makes; made again where another process has
/// removed the folder meanwhile ('forge gc').
FileLock lock_made_folder(const std::filesystem::path& folder,
                          const std::function<void(const std::string& holder)>& waiting);

/// Waits for that lock. After a second it says so by the process's Waiting, whose interrupts end
/// it: "waiting for WHAT: process 4711 on node3".
FileLock lock_signed(const std::filesystem::path& file, const std::string& what);

}  // namespace forge
