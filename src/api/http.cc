#include "api/http.h"

#include <algorithm>
#include <charconv>

#include "base/format_text.h"
#include "io/ascii.h"

namespace bezel {
namespace {

constexpr std::size_t kMaxHeaders = 100;

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Digits only: no sign, no space, no overflow.
std::optional<u64> parse_number(std::string_view text) {
  u64 number = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || last != end || text.front() == '-') return std::nullopt;
  return number;
}

HttpProblem bad(const char* message) { return {400, message}; }

HttpProblem parse_request_line(std::string_view line, HttpRequest& out) {
  const auto first = line.find(' ');
  const auto second = first == line.npos ? line.npos : line.find(' ', first + 1);
  if (second == line.npos) return bad("The request line has not three parts.");
  const auto method = line.substr(0, first), target = line.substr(first + 1, second - first - 1);
  const auto version = line.substr(second + 1);
  if (!version.starts_with("HTTP/")) return bad("The request is not HTTP.");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return {505, "Only HTTP/1.1 and HTTP/1.0 are served."};
  if (!is_token(method) || method.size() > 16) return bad("The method is malformed.");
  const auto printable = [](char c) { return c > 0x20 && c < 0x7F && c != '#'; };
  if (!target.starts_with('/') || !std::ranges::all_of(target, printable)) {
    return bad("The target must be a path that begins with '/'.");
  }
  out.method = method;
  out.target = target;
  out.chunks = out.keep_alive = version == "HTTP/1.1";
  std::string_view path = target.substr(1, target.find('?') - 1);
  while (true) {
    const auto slash = path.find('/');
    auto segment = percent_decode(path.substr(0, slash));
    if (!segment) return bad("The path has a broken escape.");
    out.path.push_back(std::move(*segment));
    if (slash == path.npos) return {};
    path.remove_prefix(slash + 1);
  }
}

HttpProblem parse_header(std::string_view line, HttpRequest& out) {
  if (out.headers.size() == kMaxHeaders) return {431, "There are too many headers."};
  const auto colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon))) return bad("A header is malformed.");
  const auto value = trim(line.substr(colon + 1));
  const auto harmless = [](char c) { return c == '\t' || (static_cast<u8>(c) >= 0x20 && c != 0x7F); };
  if (!std::ranges::all_of(value, harmless)) return bad("A header has a control character.");
  std::string name = lower_case(line.substr(0, colon));
  for (const char* single : {"host", "content-length", "transfer-encoding", "origin", "range", "if-range"}) {
    if (name == single && out.header(name) != nullptr) return bad("A header that may come once comes twice.");
  }
  out.headers.emplace_back(std::move(name), value);
  return {};
}

// What the headers say about the message itself.
HttpProblem apply_headers(HttpRequest& out) {
  if (out.chunks && out.header("host") == nullptr) return bad("There is no Host header.");
  if (out.header("transfer-encoding") != nullptr) {
    return {501, "A body must have a Content-Length; transfer encodings are not supported."};
  }
  if (const std::string* length = out.header("content-length")) {
    const auto number = parse_number(*length);
    if (!number) return bad("The Content-Length is not a number.");
    out.content_length = *number;
  }
  if (const std::string* connection = out.header("connection")) {
    const std::string words = lower_case(*connection);
    if (words.contains("close")) out.keep_alive = false;
    if (words.contains("keep-alive")) out.keep_alive = true;
  }
  return {};
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

const std::string* HttpRequest::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, [](const auto& header) { return header.first; });
  return found == headers.end() ? nullptr : &found->second;
}

HttpHead parse_head(std::string_view bytes) {
  HttpHead head;
  const auto end = bytes.substr(0, kMaxHead).find("\r\n\r\n");
  if (end == bytes.npos) {
    if (bytes.size() >= kMaxHead) head.problem = {431, "The head of the request is too long."};
    return head;
  }
  head.length = end + 4;
  HttpRequest request;
  std::string_view lines = bytes.substr(0, end + 2);
  for (bool first = true; !lines.empty() && head.problem.status == 0; first = false) {
    const auto line = lines.substr(0, lines.find("\r\n"));
    lines.remove_prefix(line.size() + 2);
    head.problem = first ? parse_request_line(line, request) : parse_header(line, request);
  }
  if (head.problem.status == 0) head.problem = apply_headers(request);
  if (head.problem.status == 0) head.request = std::move(request);
  return head;
}

const char* reason_phrase(int status) {
  static constexpr std::pair<int, const char*> kPhrases[] = {{200, "OK"},
                                                             {204, "No Content"},
                                                             {206, "Partial Content"},
                                                             {304, "Not Modified"},
                                                             {400, "Bad Request"},
                                                             {403, "Forbidden"},
                                                             {404, "Not Found"},
                                                             {405, "Method Not Allowed"},
                                                             {412, "Precondition Failed"},
                                                             {413, "Content Too Large"},
                                                             {416, "Range Not Satisfiable"},
                                                             {431, "Request Header Fields Too Large"},
                                                             {500, "Internal Server Error"},
                                                             {501, "Not Implemented"},
                                                             {503, "Service Unavailable"},
                                                             {505, "HTTP Version Not Supported"}};
  const auto found = std::ranges::find(kPhrases, status, [](const auto& phrase) { return phrase.first; });
  return found == std::end(kPhrases) ? "Status" : found->second;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size() || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0) return std::nullopt;
      c = static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    }
    if (c == '\0') return std::nullopt;
    out += c;
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~:").contains(c);
    if (plain) {
      out += c;
    } else {
      out += format_text("%{:02X}", static_cast<u8>(c));
    }
  }
  return out;
}

ByteRange choose_range(std::string_view header, u64 size) {
  const ByteRange whole{ByteRange::Kind::kWhole, 0, size}, none{ByteRange::Kind::kUnsatisfiable, 0, 0};
  header = trim(header);
  if (lower_case(header.substr(0, 6)) != "bytes=") return whole;
  header = trim(header.substr(6));
  const auto dash = header.find('-');
  if (dash == header.npos || header.contains(',')) return whole;
  const auto from = header.substr(0, dash), to = header.substr(dash + 1);
  const auto first = from.empty() ? std::nullopt : parse_number(from);
  const auto last = to.empty() ? std::nullopt : parse_number(to);
  if ((!from.empty() && !first) || (!to.empty() && !last) || (!first && !last)) return whole;
  if (!first) {  // the last so many bytes
    if (*last == 0 || size == 0) return none;
    const u64 length = std::min(*last, size);
    return {ByteRange::Kind::kPart, size - length, length};
  }
  if (last && *last < *first) return whole;
  if (*first >= size) return none;
  const u64 end = last && *last < size ? *last + 1 : size;
  return {ByteRange::Kind::kPart, *first, end - *first};
}

bool etag_listed(std::string_view list, std::string_view etag) {
  if (trim(list) == "*") return true;
  while (!list.empty()) {
    const auto comma = list.find(',');
    auto item = trim(list.substr(0, comma));
    if (item.starts_with("W/")) item.remove_prefix(2);
    if (item == etag) return true;
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
  }
  return false;
}

}  // namespace bezel
