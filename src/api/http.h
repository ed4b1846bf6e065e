// HTTP/1.1 as text: requests, ranges, entity tags. Pure functions; the server that uses them is in
// http_server.h.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"

namespace bezel {

struct HttpRequest {
  std::string method;             // as sent: "GET"
  std::string target;             // as sent: "/a%20b?x=1"
  std::vector<std::string> path;  // between the slashes, decoded, without the query: "a b". "/" gives one, ""
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  u64 content_length = 0;
  bool keep_alive = true;
  bool chunks = true;  // the client understands an answer whose length is not known

  const std::string* header(std::string_view lower_case_name) const;
};

// The answer to a request that cannot be read.
struct HttpProblem {
  int status = 0;  // 0: none
  std::string message;
};

inline constexpr std::size_t kMaxHead = 32 << 10;

struct HttpHead {
  std::optional<HttpRequest> request;  // none and no problem: more bytes, please
  std::size_t length = 0;              // bytes of the head; the body begins there
  HttpProblem problem;
};

// Reads the head of a request, strictly: what two readers could understand in two ways is refused.
HttpHead parse_head(std::string_view bytes);

const char* reason_phrase(int status);

// "a%20b" -> "a b"; nothing for broken escapes and for NUL.
std::optional<std::string> percent_decode(std::string_view text);
std::string percent_encode(std::string_view text);  // of one segment of a path

// What a Range header asks of `size` bytes. Several ranges at once are answered with the whole, as are units
// and forms that we do not know: RFC 9110 allows it.
struct ByteRange {
  enum class Kind { kWhole, kPart, kUnsatisfiable };
  Kind kind = Kind::kWhole;
  u64 first = 0;
  u64 length = 0;
};
ByteRange choose_range(std::string_view header, u64 size);

// Whether one of a list of entity tags ("*", `"a", W/"b"`) is `etag`, which is strong and quoted.
bool etag_listed(std::string_view list, std::string_view etag);

}  // namespace bezel
