#include "core/data/fetch/download.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <exception>
#include <memory>
#include <vector>

#include <curl/curl.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/base/shared_library.h"
#include "core/base/text.h"
#include "core/data/corpus/byte_reader.h"

namespace forge::data {

std::string sha256_of(const std::filesystem::path& path, const Progress& progress) {
  Sha256 hash;
  const auto total = static_cast<double>(std::max<uintmax_t>(1, std::filesystem::file_size(path)));
  const auto reader = open_raw_bytes(path);
  std::vector<char> buffer(size_t{1} << 20);
  double done = 0;
  while (const size_t got = reader->read(buffer.data(), buffer.size())) {
    hash.update(buffer.data(), got);
    done += static_cast<double>(got);
    if (progress) progress(done / total, "verifying SHA-256");
  }
  return hash.hex();
}

namespace {

constexpr long connect_seconds = 20;
constexpr long silence_seconds = 30;
constexpr long range_not_satisfiable = 416;

struct Curl {
  SharedLibrary library{"libcurl.so.4", "libcurl4"};
  decltype(curl_easy_init)* init = library.find("curl_easy_init");
  decltype(curl_easy_cleanup)* cleanup = library.find("curl_easy_cleanup");
  CURLcode (*setopt)(CURL*, CURLoption, ...) = library.find("curl_easy_setopt");
  decltype(curl_easy_perform)* perform = library.find("curl_easy_perform");
  CURLcode (*getinfo)(CURL*, CURLINFO, ...) = library.find("curl_easy_getinfo");
  decltype(curl_easy_strerror)* message = library.find("curl_easy_strerror");
};

const Curl& curl() {
  static const Curl loaded;
  return loaded;
}

/// What comes over one connection, appended to a file.
struct Transfer {
  fs::path path;
  FileDescriptor file;
  int64_t begun_at = 0;  ///< bytes that were there before
  int64_t size = 0;      ///< and are there now
  int64_t expected = 0;
  const Progress* progress = nullptr;
  std::exception_ptr failure;

  /// Runs `action`; what it throws must not pass through C.
  template <class Action>
  bool guard(Action action) {
    try {
      action();
      return true;
    } catch (...) {
      failure = std::current_exception();
      return false;
    }
  }

  void take(const char* bytes, size_t count) {
    if (size + static_cast<int64_t>(count) > expected) {
      throw Error("the server sends more than the " + with_thousands(expected) + " bytes expected",
                  "the file there is another one now",
                  ExitCode::failed);
    }
    write_all(file.get(), {bytes, count}, path);
    size += static_cast<int64_t>(count);
    report();
  }

  void report() const {
    if (*progress) (*progress)(double(size) / double(expected), "downloading");
  }
};

size_t on_bytes(char* bytes, size_t, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  return transfer.guard([&] { transfer.take(bytes, count); }) ? count : 0;
}

/// Called about once a second also while nothing comes, so that Ctrl-C is seen.
int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  return transfer.guard([&] { transfer.report(); }) ? 0 : 1;
}

struct Outcome {
  CURLcode code = CURLE_OK;
  long status = 0;  ///< of HTTP
};

Outcome perform(const RemoteFile& file, Transfer& transfer) {
  const Curl& c = curl();
  const std::unique_ptr<CURL, decltype(curl_easy_cleanup)*> handle(c.init(), c.cleanup);
  CURL* h = handle.get();
  c.setopt(h, CURLOPT_URL, file.url.c_str());
  c.setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
  c.setopt(h, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  c.setopt(h, CURLOPT_FOLLOWLOCATION, 1L);
  c.setopt(h, CURLOPT_MAXREDIRS, 10L);
  c.setopt(h, CURLOPT_FAILONERROR, 1L);
  c.setopt(h, CURLOPT_NOSIGNAL, 1L);
  c.setopt(h, CURLOPT_CONNECTTIMEOUT, connect_seconds);
  c.setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
  c.setopt(h, CURLOPT_LOW_SPEED_TIME, silence_seconds);
  c.setopt(h, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.begun_at));
  c.setopt(h, CURLOPT_WRITEFUNCTION, &on_bytes);
  c.setopt(h, CURLOPT_WRITEDATA, &transfer);
  c.setopt(h, CURLOPT_NOPROGRESS, 0L);
  c.setopt(h, CURLOPT_XFERINFOFUNCTION, &on_progress);
  c.setopt(h, CURLOPT_XFERINFODATA, &transfer);
  c.setopt(h, CURLOPT_USERAGENT, "forge");
  Outcome outcome;
  outcome.code = c.perform(h);
  c.getinfo(h, CURLINFO_RESPONSE_CODE, &outcome.status);
  if (transfer.failure) std::rethrow_exception(transfer.failure);
  return outcome;
}

bool is_broken_off(const Outcome& outcome) {
  switch (outcome.code) {
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING: return true;
    default: return false;
  }
}

/// The server gives no part of the file, or none behind what is there.
bool has_no_ranges(const Outcome& outcome) {
  return outcome.code == CURLE_RANGE_ERROR ||
         (outcome.code == CURLE_HTTP_RETURNED_ERROR && outcome.status == range_not_satisfiable);
}

std::string where_to_put(const RemoteFile& file, const fs::path& target) {
  return "get " + file.url + "\nby other means and put it at " + target.string() + "\n(" +
         with_thousands(file.bytes) + " bytes, SHA-256 " + file.sha256 + "), then call this again";
}

[[noreturn]] void refuse_file(const RemoteFile& file,
                              const fs::path& target,
                              const Outcome& outcome) {
  const std::string reason = outcome.code == CURLE_HTTP_RETURNED_ERROR
                                 ? "the server answers " + std::to_string(outcome.status)
                                 : curl().message(outcome.code);
  throw Error(
      "cannot get " + file.url + ": " + reason, where_to_put(file, target), ExitCode::failed);
}

int64_t size_of(const fs::path& path) {
  std::error_code missing;
  const uintmax_t size = fs::file_size(path, missing);
  return missing ? 0 : static_cast<int64_t>(size);
}

void make_empty(const fs::path& file) { open_own_file(file, O_WRONLY | O_TRUNC, "write"); }

void get_rest(const RemoteFile& file,
              const fs::path& partial,
              const fs::path& target,
              const Progress& progress) {
  while (size_of(partial) < file.bytes) {
    Transfer transfer;
    transfer.path = partial;
    transfer.begun_at = transfer.size = size_of(partial);
    transfer.expected = file.bytes;
    transfer.progress = &progress;
    transfer.file = open_own_file(partial, O_WRONLY | O_CREAT | O_APPEND, "write");
    const Outcome outcome = perform(file, transfer);
    const bool brought_some = transfer.size > transfer.begun_at;
    if (outcome.code == CURLE_OK && brought_some) continue;
    if (is_broken_off(outcome) && brought_some) continue;
    if (has_no_ranges(outcome) && transfer.begun_at > 0) {
      make_empty(partial);
      continue;
    }
    refuse_file(file, target, outcome);
  }
}

void require_content(const RemoteFile& file, const fs::path& path, const Progress& progress) {
  const int64_t size = size_of(path);
  std::string difference;
  if (size != file.bytes) {
    difference = "it has " + with_thousands(size) + " bytes, not " + with_thousands(file.bytes);
  } else if (sha256_of(path, progress) != file.sha256) {
    difference = "its SHA-256 is not " + file.sha256;
  }
  if (difference.empty()) return;
  throw Error(
      "'" + shown_path(path) + "' is not the expected content of " + file.url + ": " + difference,
      "remove it and get it again",
      ExitCode::failed);
}

}  // namespace

void download(const RemoteFile& file, const fs::path& target, const Progress& progress) {
  std::error_code ignored;
  if (fs::exists(target, ignored)) return require_content(file, target, progress);
  make_directories(target.parent_path());
  const fs::path partial = target.string() + ".partial";
  // Also refuses what is a link to another file, or has a second name.
  const std::optional<FileLock> lock = FileLock::try_acquire(partial);
  if (!lock)
    throw Error("another process is getting '" + shown_path(target) + "'",
                "call this again when it has ended",
                ExitCode::failed);
  if (size_of(partial) > file.bytes) make_empty(partial);
  get_rest(file, partial, target, progress);
  try {
    require_content(file, partial, progress);
  } catch (const Error&) {
    fs::remove(partial, ignored);
    throw;
  }
  sync_path(partial);
  rename_path(partial, target);
}

}  // namespace forge::data
