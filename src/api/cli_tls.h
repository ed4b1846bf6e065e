// HTTPS for the server, by OpenSSL; only the command line links it.
#pragma once
#include <string>

#include "api/http_server.h"

namespace bezel {

// Encrypted connections with a certificate (PEM, with its chain) and its key.
Result<ConnectionMaker> tls_connections(const std::string& certificate, const std::string& key);

}  // namespace bezel
