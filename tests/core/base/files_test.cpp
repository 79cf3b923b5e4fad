#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/pinned_folder.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge {
namespace {

using tests::contains;
using tests::error_of;
using tests::TemporaryFolder;

TEST_CASE("an atomic write replaces the whole file and leaves nothing beside it") {
  const TemporaryFolder folder;
  const fs::path file = folder / "result.json";
  write_file_atomic(file, "old");
  write_file_atomic(file, "newer and longer");
  REQUIRE(read_file(file) == "newer and longer");
  REQUIRE(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a write that cannot be done says where and why and keeps the old file") {
  const TemporaryFolder folder;
  const fs::path missing = folder / "none" / "file";
  const std::string message = error_of([&] { write_file_atomic(missing, "x"); });
  REQUIRE(message.find("none/file") != std::string::npos);
  REQUIRE(message.find("No such file or directory") != std::string::npos);
}

TEST_CASE("a log that was torn in mid-line is cut to its last whole line") {
  const TemporaryFolder folder;
  const fs::path file = folder / "events.jsonl";
  std::ofstream(file) << "one\ntwo\nthr";
  AppendFile log(file);
  log.append("three\n");
  log.sync();
  REQUIRE(read_file(file) == "one\ntwo\nthree\n");
}

TEST_CASE("a log without any whole line is emptied") {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << "half";
  AppendFile log(folder / "log");
  REQUIRE(read_file(folder / "log").empty());
}

TEST_CASE("a lock is exclusive and is free again when its holder is gone") {
  const TemporaryFolder folder;
  const fs::path file = folder / "lock";
  REQUIRE_FALSE(FileLock::is_held(file));
  {
    const auto lock = FileLock::try_acquire(file);
    REQUIRE(lock.has_value());
    REQUIRE_FALSE(FileLock::try_acquire(file).has_value());
    REQUIRE(FileLock::is_held(file));
  }
  REQUIRE_FALSE(FileLock::is_held(file));
}

TEST_CASE("a lock that the machine does not let one look at may be held",
          "[hostile][no_sanitizers]") {  // these need descriptors
  const TemporaryFolder folder;
  const fs::path file = folder / "lock";
  const auto lock = FileLock::try_acquire(file);
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  struct rlimit none = before;
  none.rlim_cur = 0;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const std::string problem = tests::error_of([&] { FileLock::is_held(file); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(problem.find("cannot look at the lock") != std::string::npos);
}

TEST_CASE("a lock tells who holds it while it is held") {
  const TemporaryFolder folder;
  const fs::path file = folder / "lock";
  REQUIRE(FileLock::holder(file).empty());
  {
    const FileLock lock = FileLock::acquire(file);
    REQUIRE(FileLock::holder(file).empty());
    lock.sign("a host with a longer name");
    lock.sign("node3");
    REQUIRE(FileLock::holder(file) == "process " + std::to_string(::getpid()) + " on node3");
  }
  REQUIRE(FileLock::holder(file).empty());
}

TEST_CASE("a tree is removed with all below and what its links point to stays") {
  const TemporaryFolder folder;
  folder.write("tree/a/b/file", "x");
  folder.write("kept/file", "y");
  fs::create_directory_symlink(folder / "kept", folder / "tree/a/link");
  fs::create_symlink(folder / "nowhere", folder / "tree/dangling");
  remove_tree(folder / "tree");
  REQUIRE_FALSE(fs::exists(folder / "tree"));
  REQUIRE(read_file(folder / "kept/file") == "y");
  remove_tree(folder / "tree");  // not there: no error
  remove_tree(folder / "kept/file");
  REQUIRE_FALSE(fs::exists(folder / "kept/file"));
  std::error_code error;
  remove_tree(folder / "kept/file/below", error);
  REQUIRE_FALSE(error);
  remove_tree("/proc/self", error);
  REQUIRE(error);
}

TEST_CASE("a folder that is held open leads nowhere else", "[hostile]") {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  make_directories(folder / "runs/a/checkpoints");
  const PinnedFolder held(folder / "runs", "a/checkpoints");
  held.require_at(folder / "runs/a/checkpoints");
  fs::rename(folder / "runs/a", folder / "runs/b");
  fs::create_directory_symlink(elsewhere.path(), folder / "runs/a");
  make_directories(elsewhere / "checkpoints");
  write_file_atomic(held.path() / "one", "1");
  make_own_folders(held.path(), "two/three");
  write_file_atomic(held.path() / "two/three/four", "4");
  CHECK(read_file(folder / "runs/b/checkpoints/one") == "1");
  remove_tree(held.path() / "two");
  CHECK(folder_entries(folder / "runs/b/checkpoints").size() == 1);
  CHECK(fs::is_empty(elsewhere / "checkpoints"));
  // What is called so is another folder now, and errors say what the one held is called.
  CHECK(contains(error_of([&] { held.require_at(folder / "runs/a/checkpoints"); }),
                 "was moved away while forge worked in it"));
  CHECK(contains(error_of([&] { held.require_at(folder / "runs/a"); }), "is a symbolic link"));
  CHECK(contains(error_of([&] { read_file(held.path() / "none"); }),
                 "runs/b/checkpoints/none': No such file"));
  CHECK(contains(shown_path(held.path() / "one"), "runs/b/checkpoints/one"));
  CHECK(without_pins("/proc/self/fd/x and /proc/self/fd/999999/a") ==
        "/proc/self/fd/x and /proc/self/fd/999999/a");
}

TEST_CASE("a folder behind a link is not opened, but that of all runs may be one", "[hostile]") {
  const TemporaryFolder folder;
  make_directories(folder / "real/a/checkpoints");
  fs::create_directory_symlink(folder / "real", folder / "runs");
  fs::create_directory_symlink(folder / "real/a", folder / "real/b");
  write_file_atomic(folder / "real/c", "");
  PinnedFolder(folder / "runs", "a/checkpoints").require_at(folder / "real/a/checkpoints");
  const auto fault = [&](const fs::path& inner) {
    return error_of([&] { PinnedFolder(folder / "runs", inner); });
  };
  CHECK(contains(fault("b/checkpoints"), "runs/b' is a symbolic link"));
  CHECK(contains(fault("c"), "runs/c' is a file"));
  CHECK(contains(fault("d"), "runs/d': No such file"));
}

TEST_CASE("what forge keeps for itself is not written through links", "[hostile]") {
  const TemporaryFolder folder;
  const fs::path theirs = folder.write("theirs", "whole\ncut");
  const fs::path missing = folder / "missing";
  for (const fs::path& target : {theirs, missing}) {
    const fs::path link = folder / "link";
    fs::create_symlink(target, link);
    for (const auto& action : std::vector<std::function<void()>>{
             [&] { AppendFile file(link); },
             [&] { FileLock::try_acquire(link); },
             [&] { FileLock::acquire(link); },
             [&] { open_own_file(link, O_WRONLY | O_CREAT | O_TRUNC); },
             [&] { require_own_file(link); }})
      CHECK(contains(error_of(action), "link' is a symbolic link, and forge keeps a file there"));
    REQUIRE_FALSE(FileLock::is_held(link));
    // What is replaced as a whole takes the link's place.
    write_file_atomic(link, "ours");
    REQUIRE_FALSE(fs::is_symlink(link));
    REQUIRE(read_file(link) == "ours");
    fs::remove(link);
  }
  REQUIRE(read_file(theirs) == "whole\ncut");
  REQUIRE_FALSE(fs::exists(missing));
  // Nor does it wait for the other end of a pipe.
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  REQUIRE(contains(error_of([&] { open_own_file(folder / "pipe", O_WRONLY); }), "is a pipe"));
}

TEST_CASE("no two processes name what is on its way alike, though they have the same process id",
          "[base]") {
  const std::string own = process_digits();
  REQUIRE(own == process_digits());
  REQUIRE(own.find_first_not_of("0123456789") == std::string::npos);
  REQUIRE(starts_with(own, std::to_string(::getpid())));
  REQUIRE(own.size() == std::to_string(::getpid()).size() + 12);  // which are drawn at random
  REQUIRE(is_aside_name("run.tmp-" + own));
  REQUIRE_FALSE(is_aside_name("run.tmp-20261127"));  // a user's own
  REQUIRE_FALSE(is_aside_name("run.tmp-" + own + "a"));
  REQUIRE_FALSE(is_aside_name("run.tmp-123456789012"));  // the key of a run of the config run.tmp
  REQUIRE_FALSE(is_aside_name("run.tmp-"));
}

TEST_CASE("a file on its way is not written through a link that waits for it", "[hostile]") {
  const TemporaryFolder folder;
  const fs::path theirs = folder.write("theirs", "text");
  fs::create_symlink(theirs, folder / ("file.tmp-" + process_digits()));
  write_file_atomic(folder / "file", "ours");
  REQUIRE(read_file(folder / "file") == "ours");
  REQUIRE_FALSE(fs::is_symlink(folder / "file"));
  REQUIRE(read_file(theirs) == "text");
}

TEST_CASE("what forge keeps for itself is not written through hard links", "[hostile]") {
  const TemporaryFolder folder;
  const fs::path theirs = folder.write("theirs", "whole\ncut");
  const fs::path link = folder / "link";
  const fs::path aside = folder / ("link.tmp-" + process_digits());
  fs::create_hard_link(theirs, link);
  fs::create_hard_link(theirs, aside);
  for (const auto& action : std::vector<std::function<void()>>{
           [&] { AppendFile file(link); },
           [&] { FileLock::try_acquire(link); },
           [&] { FileLock::acquire(link); },
           [&] { open_own_file(link, O_WRONLY | O_CREAT | O_TRUNC); },
           [&] { require_own_file(link); }})
    CHECK(contains(error_of(action), "link' has another name elsewhere (a hard link)"));
  // What is replaced as a whole takes the link's place.
  write_file_atomic(link, "ours");
  REQUIRE(read_file(link) == "ours");
  REQUIRE(read_file(theirs) == "whole\ncut");
  AppendFile(link).append("more\n");
  REQUIRE(read_file(theirs) == "whole\ncut");
}

TEST_CASE("forge's own folders are not made behind links", "[hostile]") {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  fs::create_directory_symlink(folder.path(), elsewhere / "runs");  // which the user chose
  make_own_folders(elsewhere / "runs", "a/b");
  make_own_folders(elsewhere / "runs", "a/b");
  REQUIRE(fs::is_directory(folder / "a/b"));
  fs::create_directory_symlink(elsewhere.path(), folder / "link");
  fs::create_directory_symlink(elsewhere / "missing", folder / "dangling");
  for (const char* name : {"link", "dangling"})
    CHECK(contains(error_of([&] { make_own_folders(folder.path(), fs::path(name) / "inner"); }),
                   std::string(name) + "' is a symbolic link, and forge keeps a folder there"));
  REQUIRE_FALSE(fs::exists(elsewhere / "inner"));
  REQUIRE_FALSE(fs::exists(elsewhere / "missing"));
}

TEST_CASE("forge's own folders bring back no folder that was moved away") {
  const TemporaryFolder folder;
  REQUIRE(contains(error_of([&] { make_own_folders(folder / "runs", "a"); }), "cannot create"));
  REQUIRE_FALSE(fs::exists(folder / "runs"));
}

TEST_CASE("a mapped file shows the file's bytes and an empty file maps to nothing") {
  const TemporaryFolder folder;
  const MappedFile mapped(folder.write("a", "bytes"));
  REQUIRE(std::string(reinterpret_cast<const char*>(mapped.data()), mapped.size()) == "bytes");
  REQUIRE(MappedFile(folder.write("b", "")).size() == 0);
}

TEST_CASE("the cache folder is the one that was chosen, else XDG's") {
  ::setenv("FORGE_CACHE_DIR", "/chosen", 1);
  REQUIRE(user_cache_dir() == "/chosen");
  ::unsetenv("FORGE_CACHE_DIR");
  const char* before = std::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  REQUIRE(user_cache_dir() == "/xdg/forge");
  // Of relative paths XDG's do not count, and a worker may be started elsewhere.
  const char* home = std::getenv("HOME");
  const std::string kept_home = home ? home : "";
  ::setenv("XDG_CACHE_HOME", "xdg", 1);
  ::setenv("HOME", "home", 1);
  REQUIRE(user_cache_dir() == fs::current_path() / "home/.cache/forge");
  home ? ::setenv("HOME", kept_home.c_str(), 1) : ::unsetenv("HOME");
  before ? ::setenv("XDG_CACHE_HOME", kept.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
}

size_t entries_of(const fs::path& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST_CASE("an output file is new or replaced as a whole", "[fs]") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder / "out.csv";
  write_output_file(path, "one");
  REQUIRE(read_file(path) == "one");
  OutputFile file(path);
  file.write("tw");
  REQUIRE(read_file(path) == "one");
  file.write("o");
  file.finish();
  REQUIRE(read_file(path) == "two");
  REQUIRE(entries_of(folder.path()) == 1);
}

TEST_CASE("an output file that is not finished stays as it was", "[fs]") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder.write("out.csv", "old");
  OutputFile(path).write("new");
  OutputFile(folder / "other").write("new");
  REQUIRE(read_file(path) == "old");
  REQUIRE(entries_of(folder.path()) == 1);
}

TEST_CASE("a link is written through and never replaced", "[fs]") {
  const tests::TemporaryFolder folder;
  const fs::path target = folder.write("target", "a longer text");
  fs::create_symlink(target, folder / "link");
  write_output_file(folder / "link", "text");
  REQUIRE(fs::is_symlink(folder / "link"));
  REQUIRE(read_file(target) == "text");
  REQUIRE(entries_of(folder.path()) == 2);
}

TEST_CASE("a pipe takes the text and stays a pipe", "[fs]") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const FileDescriptor reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(reader);
  write_output_file(path, "text");
  char received[5] = {};
  REQUIRE(::read(reader.get(), received, sizeof received) == 4);
  REQUIRE(std::string(received) == "text");
  REQUIRE(fs::is_fifo(path));
}

TEST_CASE("nobody waits for the reader of a pipe that has none", "[fs][hostile]") {
  const tests::TemporaryFolder folder;
  const fs::path path = folder / "RESULTS.md";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(tests::contains(tests::error_of([&] { write_output_file(path, "text"); }),
                        "it is a pipe that nobody reads"));
  CHECK(fs::is_fifo(path));
}

TEST_CASE("a device is not replaced", "[fs]") {
  // A terminal of the test's own: nobody else's device is at stake where this fails.
  const FileDescriptor terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(terminal);
  REQUIRE(::grantpt(terminal.get()) == 0);
  REQUIRE(::unlockpt(terminal.get()) == 0);
  const fs::path device = ::ptsname(terminal.get());
  REQUIRE(fs::is_character_file(device));
  write_output_file(device, "text");
  REQUIRE(fs::is_character_file(device));
  char received[5] = {};
  REQUIRE(::read(terminal.get(), received, 4) == 4);
  REQUIRE(std::string(received) == "text");
}

TEST_CASE("what cannot be written is named", "[fs]") {
  const tests::TemporaryFolder folder;
  const std::string error =
      tests::error_of([&] { write_output_file(folder / "missing/out", "text"); });
  REQUIRE(tests::contains(error, "missing/out': No such file or directory"));
  REQUIRE_FALSE(tests::contains(error, ".tmp-"));
  REQUIRE(tests::contains(tests::error_of([&] { write_output_file(folder.path(), "text"); }),
                          "Is a directory"));
}

TEST_CASE("only files are read, and nobody waits for a pipe", "[base][files][hostile]") {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink("/dev/zero", folder / "zero");
  for (const auto& [path, kind] : {std::pair<fs::path, std::string>{pipe, "a pipe"},
                                   {folder / "zero", "a device"},
                                   {folder.path(), "a folder"}}) {
    const std::string message = "it is " + kind + ", not a file";
    CHECK(tests::contains(tests::error_of([&p = path] { read_file(p); }), message));
    CHECK(tests::contains(tests::error_of([&p = path] { MappedFile{p}; }), message));
    CHECK(tests::contains(tests::error_of([&p = path] { last_line(p); }), message));
  }
  CHECK_FALSE(FileLock::is_held(pipe));
}

TEST_CASE("an open file knows whether its name is still its own", "[base][files]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "lock";
  const FileLock lock = *FileLock::try_acquire(path);
  CHECK(lock.is_at(path));
  fs::remove(path);
  CHECK_FALSE(lock.is_at(path));
  const FileLock other = *FileLock::try_acquire(path);
  CHECK_FALSE(lock.is_at(path));
  CHECK(other.is_at(path));
}

TEST_CASE("without a home the cache is a folder that only its user can write to", "[hostile]") {
  const TemporaryFolder folder;
  std::vector<std::pair<const char*, std::optional<std::string>>> before;
  for (const char* name : {"FORGE_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"}) {
    const char* value = std::getenv(name);
    before.emplace_back(name, value ? std::optional<std::string>(value) : std::nullopt);
    ::unsetenv(name);
  }
  ::setenv("TMPDIR", folder.path().c_str(), 1);

  const fs::path cache = folder / ("forge-cache-" + std::to_string(::geteuid()));
  const std::string first = error_of([&] { user_cache_dir(); });
  const fs::perms made = fs::status(cache).permissions();
  const std::string again = error_of([&] { user_cache_dir(); });
  fs::permissions(cache, fs::perms::all);
  const std::string writable = error_of([&] { user_cache_dir(); });
  fs::remove(cache);
  fs::create_directory(folder / "elsewhere");
  fs::create_directory_symlink(folder / "elsewhere", cache);
  const std::string link = error_of([&] { user_cache_dir(); });

  for (const auto& [name, value] : before)
    value ? ::setenv(name, value->c_str(), 1) : ::unsetenv(name);
  CHECK(first.empty());
  CHECK(made == fs::perms::owner_all);
  CHECK(again.empty());
  CHECK(tests::contains(writable, "can be written by other users"));
  CHECK(tests::contains(link, "is not a folder"));
}

TEST_CASE("a folder that a limit keeps from being listed is not empty",
          "[files][hostile][no_sanitizers]") {
  const TemporaryFolder folder;
  write_file_atomic(folder / "a", "");
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  struct rlimit none = before;
  none.rlim_cur = 0;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  std::string said;
  try {
    said = std::to_string(folder_entries(folder.path()).size());
  } catch (const Error& problem) {
    said = problem.message();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(contains(said, "cannot list '" + folder.path().string() + "': Too many open files"));
  CHECK(folder_entries(folder.path()).size() == 1);
  CHECK(folder_entries(folder / "none").empty());
}

}  // namespace
TEST_CASE("a file that cannot be seen is not passed over for another one", "[hostile]") {
  const TemporaryFolder folder;
  folder.write("there/a.yaml", "");
  CHECK(is_seen_file(folder / "there/a.yaml"));
  CHECK_FALSE(is_seen_file(folder / "there/b.yaml"));
  CHECK_FALSE(is_seen_file(folder / "gone/a.yaml"));
  CHECK_FALSE(is_seen_file(folder / "there"));
  fs::create_symlink(folder / "gone.yaml", folder / "there/link.yaml");
  CHECK(contains(error_of([&] { is_seen_file(folder / "there/link.yaml"); }), "leads nowhere"));
  if (::geteuid() != 0) return;  // only root can be two users
  fs::permissions(folder / "there", fs::perms::none);
  CHECK(contains(tests::words_of_other_user([&] {
                   return std::string(is_seen_file(folder / "there/a.yaml") ? "seen" : "not there");
                 }),
                 "cannot look at"));
}

}  // namespace forge
