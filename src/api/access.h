// Who may ask a server on this machine: any page of any site can send requests to it, so what a browser says
// about the page decides.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "base/result.h"

namespace bezel {

class AccessRules {
 public:
  // `host` is what the server is bound to, `origins` the sites that may use it: "https://example.org".
  static Result<AccessRules> make(std::string_view host, const std::vector<std::string>& origins,
                                  bool encrypted);

  // Whether the request means this server. A page whose name was pointed at this machine (DNS rebinding)
  // counts as same-origin to the browser, but its name is in the Host header.
  bool host_allowed(const HttpRequest& request) const;

  struct Verdict {
    bool allowed = false;
    std::string origin;  // to be named in Access-Control-Allow-Origin; empty: nothing to be said
  };
  // Whether the page that sends the request may use the API: one of our own, one of an allowed site, or no
  // page at all.
  Verdict judge(const HttpRequest& request) const;

 private:
  std::vector<std::string> hosts_;    // without ports
  std::vector<std::string> origins_;  // in lower case
  bool any_address_ = false;          // every IP address as host: no name can be rebound to it
  bool encrypted_ = false;
};

}  // namespace bezel
