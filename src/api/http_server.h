// A small HTTP/1.1 server: one thread per connection, answers of known or unknown length, and the question
// whether the client is still there. Native only.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "api/http.h"
#include "base/result.h"

namespace bezel {

// Bytes to and from a client over a socket that never blocks; used by one thread.
class HttpConnection {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  virtual ~HttpConnection() = default;
  // Some bytes; 0 at the end, at the deadline and after errors.
  virtual std::size_t read(char* out, std::size_t size, Deadline deadline) = 0;
  virtual bool write(std::string_view bytes) = 0;  // all of them, or false
  virtual bool gone() = 0;                         // the client has closed its side
};

// Takes the socket.
using ConnectionMaker = std::function<std::unique_ptr<HttpConnection>(int socket)>;
std::unique_ptr<HttpConnection> plain_connection(int socket);

// Waits until the socket can be read (or written). False at the deadline.
bool wait_for_socket(int socket, bool to_write, HttpConnection::Deadline deadline);
// How long a client may take no bytes at all.
inline constexpr std::chrono::seconds kWritePatience{120};

// The answer to one request.
class HttpReply {
 public:
  HttpReply(HttpConnection& connection, const HttpRequest& request)
      : connection_(connection),
        body_(request.method != "HEAD"),
        chunks_(request.chunks),
        keep_alive_(request.keep_alive) {}

  void header(std::string_view name, std::string_view value);

  // A whole answer. An empty type: none is stated.
  void send(int status, std::string_view type, std::string_view body);

  // In pieces: begin, write..., end. Without a length the pieces go out as chunks.
  bool begin(int status, std::string_view type, std::optional<u64> length);
  bool write(std::string_view piece);  // false when the client is gone
  void end();

  bool begun() const { return begun_; }
  bool gone() { return failed_ || connection_.gone(); }
  // The next request may come over the same connection.
  bool keeps() const { return keep_alive_ && ended_ && !failed_; }

 private:
  bool put(std::string_view bytes);

  HttpConnection& connection_;
  bool body_, chunks_, keep_alive_;
  bool begun_ = false, chunked_ = false, ended_ = false, failed_ = false;
  u64 left_ = 0;
  std::string headers_;
};

using HttpHandler = std::function<void(const HttpRequest&, HttpReply&)>;

class HttpServer {
 public:
  struct Options {
    u64 max_body = 32 << 20;
    u32 max_connections = 64;
    ConnectionMaker connect = plain_connection;
  };
  // Listens at once; port 0 is any that is free. A host is an address, or a name that stands for one.
  static Result<std::unique_ptr<HttpServer>> listen(const std::string& host, u16 port, Options options);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  u16 port() const { return port_; }
  // Serves until `stop` says so, which is asked ten times a second; then ends all connections.
  void run(const HttpHandler& handler, const std::function<bool()>& stop);

 private:
  struct Client {
    int socket = -1;
    std::atomic<bool> done = false;
    std::thread thread;
  };

  HttpServer(int socket, u16 port, Options options)
      : socket_(socket), port_(port), options_(std::move(options)) {}
  void accept_one(const HttpHandler& handler);
  void serve(Client& client, const HttpHandler& handler);
  bool serve_request(HttpConnection& connection, std::string& bytes, const HttpHandler& handler);
  void forget_finished();

  int socket_;
  u16 port_;
  Options options_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // over clients_ and their sockets
  std::list<Client> clients_;
};

}  // namespace bezel
