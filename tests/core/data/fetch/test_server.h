#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace forge::tests {

/// Serves a few texts by HTTP on a port of this machine, as one wants to see a client cope with.
class HttpServer {
 public:
  explicit HttpServer(std::map<std::string, std::string> files);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string url(const std::string& name) const;
  /// Every answer breaks off after so many bytes of the file; 0: none does.
  void break_off_after(size_t bytes) { break_off_ = bytes; }
  void ignore_ranges() { ranges_ = false; }
  /// First bytes that were asked for, one for each request.
  std::vector<size_t> requests() const;

 private:
  void serve();
  void answer(int connection);

  std::map<std::string, std::string> files_;
  int socket_ = -1;
  int port_ = 0;
  std::atomic<size_t> break_off_ = 0;
  std::atomic<bool> ranges_ = true;
  std::atomic<bool> stopped_ = false;
  mutable std::mutex mutex_;
  std::vector<size_t> requests_;
  std::thread thread_;
};

}  // namespace forge::tests
