#include "api/cli_tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>

#include "base/quote.h"

namespace bezel {
namespace {

using Clock = std::chrono::steady_clock;
using Context = std::shared_ptr<SSL_CTX>;

std::string last_problem() {
  char text[256] = "no reason given";
  const unsigned long code = ERR_get_error();
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

class TlsConnection final : public HttpConnection {
 public:
  TlsConnection(Context context, int socket)
      : context_(std::move(context)), socket_(socket), ssl_(SSL_new(context_.get())) {
    if (ssl_ == nullptr) return;
    SSL_set_fd(ssl_, socket);
    SSL_set_accept_state(ssl_);  // the handshake comes with the first read
  }
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;
  ~TlsConnection() override {
    if (!broken_) SSL_shutdown(ssl_);
    SSL_free(ssl_);
  }

  std::size_t read(char* out, std::size_t size, Deadline deadline) override {
    std::size_t got = 0;
    return attempt(deadline, [&] { return SSL_read_ex(ssl_, out, size, &got); }) ? got : 0;
  }
  bool write(std::string_view bytes) override {
    if (bytes.empty()) return !broken_;
    std::size_t sent = 0;
    return attempt(Clock::now() + kWritePatience,
                   [&] { return SSL_write_ex(ssl_, bytes.data(), bytes.size(), &sent); });
  }
  bool gone() override {
    if (broken_) return true;
    char byte = 0;
    std::size_t got = 0;
    ERR_clear_error();
    const int status = SSL_peek_ex(ssl_, &byte, 1, &got);
    return status != 1 && SSL_get_error(ssl_, status) != SSL_ERROR_WANT_READ;
  }

 private:
  // Repeats an operation until it is done. After a failure the connection may not be used any more.
  template <class Operation>
  bool attempt(Deadline deadline, Operation operation) {
    while (!broken_) {
      ERR_clear_error();
      const int status = operation();
      if (status == 1) return true;
      const int why = SSL_get_error(ssl_, status);
      const bool waits = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
      broken_ = !waits || !wait_for_socket(socket_, why == SSL_ERROR_WANT_WRITE, deadline);
    }
    return false;
  }

  Context context_;
  int socket_;
  SSL* ssl_;
  bool broken_ = ssl_ == nullptr;
};

}  // namespace

Result<ConnectionMaker> tls_connections(const std::string& certificate, const std::string& key) {
  const Context context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return fail(ErrorKind::kMemory, "OpenSSL cannot be used: {}.", last_problem());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1) {
    return invalid("The certificate {} cannot be used: {}.", quote(certificate), last_problem());
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return invalid("The key {} cannot be used with this certificate: {}.", quote(key), last_problem());
  }
  return [context](int socket) { return std::make_unique<TlsConnection>(context, socket); };
}

}  // namespace bezel
