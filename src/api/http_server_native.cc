#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/http_server.h"
#include "base/format_text.h"
#include "base/quote.h"

namespace bezel {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kHeadPatience = 30s;   // for a whole head, and between requests
constexpr auto kBodyPatience = 120s;  // for a whole body

class PlainConnection final : public HttpConnection {
 public:
  explicit PlainConnection(int socket) : socket_(socket) {}
  PlainConnection(const PlainConnection&) = delete;
  PlainConnection& operator=(const PlainConnection&) = delete;
  ~PlainConnection() override = default;

  std::size_t read(char* out, std::size_t size, Deadline deadline) override {
    while (true) {
      const auto got = recv(socket_, out, size, 0);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno == EINTR) continue;
      if (errno != EAGAIN || !wait_for_socket(socket_, false, deadline)) return 0;
    }
  }
  bool write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno != EINTR &&
                 (errno != EAGAIN || !wait_for_socket(socket_, true, Clock::now() + kWritePatience))) {
        return false;
      }
    }
    return true;
  }
  bool gone() override {
    char byte = 0;
    const auto got = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  }

 private:
  int socket_;
};

// Bytes that nobody read would make closing destroy the answer on its way: they are read and dropped for a
// while.
void close_gently(int socket) {
  shutdown(socket, SHUT_WR);
  const auto deadline = Clock::now() + 1s;
  char dropped[16 << 10];
  while (wait_for_socket(socket, false, deadline) && recv(socket, dropped, sizeof dropped, 0) > 0) {
  }
}

}  // namespace

std::unique_ptr<HttpConnection> plain_connection(int socket) {
  return std::make_unique<PlainConnection>(socket);
}

bool wait_for_socket(int socket, bool to_write, HttpConnection::Deadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left <= 0ms) return false;
    pollfd waiting{.fd = socket, .events = static_cast<short>(to_write ? POLLOUT : POLLIN), .revents = 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<i64>(left.count(), 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

void HttpReply::header(std::string_view name, std::string_view value) {
  headers_ += name;
  headers_ += ": ";
  // A value may repeat what came from outside: it must not begin a line of its own.
  for (const char c : value) headers_ += static_cast<u8>(c) < 0x20 || c == 0x7F ? ' ' : c;
  headers_ += "\r\n";
}

void HttpReply::send(int status, std::string_view type, std::string_view body) {
  if (begin(status, type, body.size())) write(body);
  end();
}

bool HttpReply::begin(int status, std::string_view type, std::optional<u64> length) {
  begun_ = true;
  if (!type.empty()) header("Content-Type", type);
  if (length) {
    left_ = *length;
    if (status != 204 && status != 304) header("Content-Length", std::to_string(*length));
  } else if (chunks_) {
    chunked_ = true;
    header("Transfer-Encoding", "chunked");
  } else {
    keep_alive_ = false;  // the end of the connection is the end of the answer
  }
  header("Connection", keep_alive_ ? "keep-alive" : "close");
  return put(format_text("HTTP/1.1 {} {}\r\n{}\r\n", status, reason_phrase(status), headers_));
}

bool HttpReply::write(std::string_view piece) {
  if (!body_ || piece.empty()) return !failed_;
  if (!chunked_) {
    left_ -= std::min<u64>(left_, piece.size());
    return put(piece);
  }
  return put(format_text("{:x}\r\n{}\r\n", piece.size(), piece));
}

void HttpReply::end() {
  if (chunked_ && body_) put("0\r\n\r\n");
  // A length that was promised and not kept: only closing tells the client.
  if (body_ && left_ > 0) failed_ = true;
  ended_ = true;
}

bool HttpReply::put(std::string_view bytes) {
  failed_ = failed_ || !connection_.write(bytes);
  return !failed_;
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const std::string& host, u16 port, Options options) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    return invalid("The host {} is not an address of this machine: {}.", quote(host), gai_strerror(status));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  int problem = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int fd = socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      problem = errno;
      continue;
    }
    const int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(fd, one->ai_addr, one->ai_addrlen) == 0 && ::listen(fd, 128) == 0 &&
        getsockname(fd, generic, &length) == 0) {
      const u16 bound = address.ss_family == AF_INET6
                            ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                            : reinterpret_cast<const sockaddr_in*>(&address)->sin_port;
      return std::unique_ptr<HttpServer>(new HttpServer(fd, ntohs(bound), std::move(options)));
    }
    problem = errno;
    close(fd);
  }
  return fail(ErrorKind::kIo, "Port {} of {} cannot be used: {}.", port, quote(host), std::strerror(problem));
}

HttpServer::~HttpServer() { close(socket_); }

void HttpServer::run(const HttpHandler& handler, const std::function<bool()>& stop) {
  while (!stop()) {
    forget_finished();
    if (wait_for_socket(socket_, false, Clock::now() + 100ms)) accept_one(handler);
  }
  stopping_ = true;
  {
    const std::scoped_lock lock(mutex_);
    for (const Client& client : clients_) {
      if (client.socket >= 0) shutdown(client.socket, SHUT_RDWR);
    }
  }
  for (Client& client : clients_) client.thread.join();
  clients_.clear();
}

void HttpServer::accept_one(const HttpHandler& handler) {
  const int fd = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    // Out of descriptors: the connection stays ready, so wait instead of asking in circles.
    if (errno == EMFILE || errno == ENFILE) std::this_thread::sleep_for(50ms);
    return;
  }
  if (clients_.size() >= options_.max_connections) {
    close(fd);
    return;
  }
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const std::scoped_lock lock(mutex_);
  Client& client = clients_.emplace_back();
  client.socket = fd;
  client.thread = std::thread([this, &client, &handler] { serve(client, handler); });
}

void HttpServer::forget_finished() {
  const std::scoped_lock lock(mutex_);
  std::erase_if(clients_, [](Client& client) {
    if (!client.done) return false;
    client.thread.join();
    return true;
  });
}

void HttpServer::serve(Client& client, const HttpHandler& handler) {
  if (const auto connection = options_.connect(client.socket)) {
    std::string bytes;  // read and not yet used
    while (!stopping_ && serve_request(*connection, bytes, handler)) {
    }
  }
  if (!stopping_) close_gently(client.socket);
  const std::scoped_lock lock(mutex_);
  close(client.socket);
  client.socket = -1;
  client.done = true;
}

// False: the connection ends.
bool HttpServer::serve_request(HttpConnection& connection, std::string& bytes, const HttpHandler& handler) {
  char buffer[16 << 10];
  const auto read_more = [&](Clock::time_point deadline) {
    const std::size_t got = connection.read(buffer, sizeof buffer, deadline);
    bytes.append(buffer, got);
    return got > 0;
  };
  const auto refuse = [&](int status, std::string_view message) {
    HttpRequest nothing;
    nothing.keep_alive = false;
    HttpReply(connection, nothing).send(status, "text/plain; charset=utf-8", message);
    return false;
  };

  HttpHead head = parse_head(bytes);
  const auto head_deadline = Clock::now() + kHeadPatience;
  while (!head.request && head.problem.status == 0) {
    if (!read_more(head_deadline)) return false;
    head = parse_head(bytes);
  }
  if (!head.request) return refuse(head.problem.status, head.problem.message);
  HttpRequest& request = *head.request;
  if (request.content_length > options_.max_body) {
    return refuse(413, format_text("The body has {} bytes; {} are the most.", request.content_length,
                                   options_.max_body));
  }
  const std::string* expects = request.header("expect");
  if (expects != nullptr && *expects == "100-continue" && request.content_length > 0 &&
      !connection.write("HTTP/1.1 100 Continue\r\n\r\n")) {
    return false;
  }
  const auto whole = head.length + static_cast<std::size_t>(request.content_length);
  const auto body_deadline = Clock::now() + kBodyPatience;
  while (bytes.size() < whole) {
    if (!read_more(body_deadline)) return false;
  }
  request.body = bytes.substr(head.length, static_cast<std::size_t>(request.content_length));
  bytes.erase(0, whole);

  HttpReply reply(connection, request);
  handler(request, reply);
  if (!reply.begun()) reply.send(500, "", "");
  return reply.keeps();
}

}  // namespace bezel
