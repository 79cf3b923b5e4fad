#include "core/base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"

namespace forge {
namespace {

bool is_replaced(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  return !fs::exists(status) || fs::is_regular_file(status);
}

}  // namespace

OutputFile::OutputFile(fs::path path) : path_(std::move(path)) {
  if (is_replaced(path_)) aside_ = path_.string() + ".tmp-" + std::to_string(::getpid());
  const fs::path& opened = aside_.empty() ? path_ : aside_;
  constexpr mode_t anybody = 0666;
  file_ = FileDescriptor(::open(opened.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, anybody));
  if (!file_) throw system_error("write '" + path_.string() + "'", errno);
}

OutputFile::~OutputFile() {
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

void OutputFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file_.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("write '" + path_.string() + "'", errno);
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void OutputFile::finish() {
  if (aside_.empty()) return;
  if (::fsync(file_.get()) != 0) throw system_error("write '" + path_.string() + "'", errno);
  if (::rename(aside_.c_str(), path_.c_str()) != 0)
    throw system_error("write '" + path_.string() + "'", errno);
  aside_.clear();
  sync_path(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
}

void write_output_file(const fs::path& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.finish();
}

}  // namespace forge
