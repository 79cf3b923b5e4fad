#include "tests/core/data/fetch/test_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <stdexcept>

namespace forge::tests {
namespace {

void send_all(int connection, const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t now = ::send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return;
    sent += static_cast<size_t>(now);
  }
}

}  // namespace

HttpServer::HttpServer(std::map<std::string, std::string> files) : files_(std::move(files)) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket_, generic, size) != 0 || ::listen(socket_, 8) != 0 ||
      ::getsockname(socket_, generic, &size) != 0) {
    throw std::runtime_error("no port on this machine");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

HttpServer::~HttpServer() {
  stopped_ = true;
  ::shutdown(socket_, SHUT_RDWR);
  thread_.join();
  ::close(socket_);
}

std::string HttpServer::url(const std::string& name) const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/" + name;
}

std::vector<size_t> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::serve() {
  while (!stopped_) {
    const int connection = ::accept(socket_, nullptr, nullptr);
    if (connection < 0) return;
    answer(connection);
    ::close(connection);
  }
}

void HttpServer::answer(int connection) {
  std::string request;
  char buffer[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = ::recv(connection, buffer, sizeof buffer, 0);
    if (got <= 0) return;
    request.append(buffer, static_cast<size_t>(got));
  }
  const std::string name = request.substr(5, request.find(' ', 5) - 5);
  const size_t range = request.find("Range: bytes=");
  const size_t asked = range == std::string::npos ? 0 : std::stoul(request.substr(range + 13));
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(asked);
  }
  const auto found = files_.find(name);
  const std::string close = "Connection: close\r\n";
  if (found == files_.end()) {
    return send_all(connection, "HTTP/1.1 404 Not Found\r\n" + close + "Content-Length: 0\r\n\r\n");
  }
  const std::string& content = found->second;
  const size_t first = ranges_ ? asked : 0;
  if (first >= content.size() && first > 0) {
    return send_all(connection,
                    "HTTP/1.1 416 Range Not Satisfiable\r\n" + close + "Content-Length: 0\r\n\r\n");
  }
  std::string head = first > 0 ? "HTTP/1.1 206 Partial Content\r\n" : "HTTP/1.1 200 OK\r\n";
  if (first > 0) {
    head += "Content-Range: bytes " + std::to_string(first) + "-" +
            std::to_string(content.size() - 1) + "/" + std::to_string(content.size()) + "\r\n";
  }
  head += close + "Content-Length: " + std::to_string(content.size() - first) + "\r\n\r\n";
  const size_t sent = break_off_ > 0 ? size_t(break_off_) : content.size();
  send_all(connection, head + content.substr(first, sent));
}

}  // namespace forge::tests
