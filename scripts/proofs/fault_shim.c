// Preloaded into forge, its supervisor and its worker, to make one call that changes a file fail.
//
//   FORGE_FAULT_ROOT    only files below this folder count
//   FORGE_FAULT_LOG     every such call is a line "program function path" of this file
//   FORGE_FAULT_CALL    the line of the call to spoil
//   FORGE_FAULT_AT      which of a process's calls with that line: 1 the first one
//   FORGE_FAULT_KIND    ENOSPC, EIO or short: half of what was to be written is
//   FORGE_FAULT_MARK    a file that is made when it is done, so that it is done once
//   FORGE_FAULT_BUDGET  so many bytes can be written by all processes together, counted in the file
//                       FORGE_FAULT_MARK, and then none: a disk that is full and stays so
//
// A path in a line is relative to the root, and each of its numbers is a '#'.
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { line_bytes = 4096 };

static atomic_int calls_seen;

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

/// "forge-run", "forge-supervise", "forge-worker-libtorch": what runs, with forge's subcommand.
static const char* program(void) {
  static char name[256];
  if (name[0]) return name;
  char arguments[1024] = "";
  int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  long size = syscall(SYS_read, file, arguments, sizeof arguments - 1);
  syscall(SYS_close, file);
  const char* second = size > 0 ? arguments + strlen(arguments) + 1 : "";
  char text[256];
  snprintf(text, sizeof text, "%s", program_invocation_short_name);
  if (strcmp(text, "forge") == 0) snprintf(text, sizeof text, "forge-%s", second);
  memcpy(name, text, sizeof name);
  return name;
}

/// The line of a call; false where the path is not below the root.
static bool line_of(const char* function, const char* path, char* line) {
  const char* root = setting("FORGE_FAULT_ROOT");
  const size_t length = strlen(root);
  if (length == 0 || strncmp(path, root, length) != 0 || path[length] != '/') return false;
  int end = snprintf(line, line_bytes / 2, "%s %s ", program(), function);
  for (const char* at = path + length + 1; *at && end < line_bytes - 2; ++at) {
    if (!isdigit((unsigned char)*at)) {
      line[end++] = *at;
    } else if (line[end - 1] != '#') {
      line[end++] = '#';
    }
  }
  line[end] = '\0';
  return true;
}

static bool path_of(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, line_bytes - 1);
  path[size > 0 ? size : 0] = '\0';
  return size > 0;
}

static void append_line(const char* file, const char* line) {
  char text[line_bytes + 1];
  const int size = snprintf(text, sizeof text, "%s\n", line);
  const int fd =
      (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  syscall(SYS_write, fd, text, (size_t)size);
  syscall(SYS_close, fd);
}

/// Whether this call is the one to spoil.
static bool is_chosen(const char* line) {
  if (strcmp(line, setting("FORGE_FAULT_CALL")) != 0) return false;
  if (atomic_fetch_add(&calls_seen, 1) + 1 != atoi(setting("FORGE_FAULT_AT"))) return false;
  const int mark = (int)syscall(SYS_openat, AT_FDCWD, setting("FORGE_FAULT_MARK"),
                                O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (mark < 0) return false;
  syscall(SYS_close, mark);
  return true;
}

/// Takes bytes from the budget, if there is one; false where it is spent.
static bool take_from_budget(size_t bytes) {
  const char* budget = setting("FORGE_FAULT_BUDGET");
  if (!budget[0]) return true;
  static _Atomic long long* spent;
  if (!spent) {
    const int file = (int)syscall(SYS_openat, AT_FDCWD, setting("FORGE_FAULT_MARK"),
                                  O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    syscall(SYS_ftruncate, file, sizeof *spent);
    void* shared = mmap(NULL, sizeof *spent, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (shared == MAP_FAILED) abort();
    spent = shared;
  }
  return atomic_fetch_add(spent, (long long)bytes) + (long long)bytes <= atoll(budget);
}

/// What is to become of a call: 0 nothing, an errno, or -1 a short write.
static int fate_of(const char* function, const char* path, size_t bytes) {
  char line[line_bytes];
  if (!line_of(function, path, line)) return 0;
  if (setting("FORGE_FAULT_LOG")[0]) append_line(setting("FORGE_FAULT_LOG"), line);
  if (bytes > 0 && !take_from_budget(bytes)) return ENOSPC;
  if (!is_chosen(line)) return 0;
  const char* kind = setting("FORGE_FAULT_KIND");
  if (strcmp(kind, "short") == 0) return bytes > 1 ? -1 : 0;
  return strcmp(kind, "EIO") == 0 ? EIO : ENOSPC;
}

static int fate_of_file(const char* function, int fd, size_t bytes) {
  const int before = errno;
  char path[line_bytes];
  const int fate = path_of(fd, path) ? fate_of(function, path, bytes) : 0;
  errno = before;
  return fate;
}

/// A path as the root is given: absolute.
static int fate_of_path(const char* function, const char* path) {
  const int before = errno;
  char absolute[line_bytes];
  if (path[0] == '/') {
    snprintf(absolute, sizeof absolute, "%s", path);
  } else {
    char here[line_bytes / 2];
    snprintf(absolute, sizeof absolute, "%s/%s", getcwd(here, sizeof here) ? here : "", path);
  }
  const int fate = fate_of(function, absolute, 0);
  errno = before;
  return fate;
}

static int failed(int fate) {
  errno = fate;
  return -1;
}

static void* next(const char* name) { return dlsym(RTLD_NEXT, name); }

ssize_t write(int fd, const void* bytes, size_t size) {
  const int fate = fate_of_file("write", fd, size);
  if (fate > 0) return failed(fate);
  ssize_t (*real)(int, const void*, size_t) = next("write");
  return real(fd, bytes, fate < 0 ? size / 2 : size);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  const int fate = fate_of_file("writev", fd, size);
  if (fate > 0) return failed(fate);
  if (fate < 0) {  // a first part of some bytes alone
    while (parts->iov_len == 0) ++parts;
    ssize_t (*real)(int, const void*, size_t) = next("write");
    return real(fd, parts->iov_base, (parts->iov_len + 1) / 2);
  }
  ssize_t (*real)(int, const struct iovec*, int) = next("writev");
  return real(fd, parts, count);
}

ssize_t pwrite(int fd, const void* bytes, size_t size, off_t at) {
  const int fate = fate_of_file("pwrite", fd, size);
  if (fate > 0) return failed(fate);
  ssize_t (*real)(int, const void*, size_t, off_t) = next("pwrite");
  return real(fd, bytes, fate < 0 ? size / 2 : size, at);
}

ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t at) {
  return pwrite(fd, bytes, size, at);
}

int fsync(int fd) {
  const int fate = fate_of_file("fsync", fd, 0);
  if (fate > 0) return failed(fate);
  int (*real)(int) = next("fsync");
  return real(fd);
}

int fdatasync(int fd) {
  const int fate = fate_of_file("fdatasync", fd, 0);
  if (fate > 0) return failed(fate);
  int (*real)(int) = next("fdatasync");
  return real(fd);
}

int ftruncate(int fd, off_t size) {
  const int fate = fate_of_file("ftruncate", fd, 0);
  if (fate > 0) return failed(fate);
  int (*real)(int, off_t) = next("ftruncate");
  return real(fd, size);
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int rename(const char* from, const char* to) {
  const int fate = fate_of_path("rename", to);
  if (fate > 0) return failed(fate);
  int (*real)(const char*, const char*) = next("rename");
  return real(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  const int fate = fate_of_path("renameat2", to);
  if (fate > 0) return failed(fate);
  int (*real)(int, const char*, int, const char*, unsigned) = next("renameat2");
  return real(from_folder, from, to_folder, to, flags);
}
