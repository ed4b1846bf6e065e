#include "api/access.h"

#include <algorithm>

#include "base/quote.h"
#include "io/ascii.h"

namespace bezel {
namespace {

// "localhost:8080" -> "localhost", "[::1]:8080" -> "[::1]"
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_address(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) return true;
  return !host.empty() &&
         std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

bool is_host(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || std::string_view(".-_:[]").contains(c);
  });
}

}  // namespace

Result<AccessRules> AccessRules::make(std::string_view host, const std::vector<std::string>& origins,
                                      bool encrypted) {
  AccessRules rules;
  rules.encrypted_ = encrypted;
  rules.hosts_ = {"localhost", "127.0.0.1", "[::1]"};
  std::string bound = lower_case(host);
  if (bound.contains(':') && !bound.starts_with('[')) bound = "[" + bound + "]";
  rules.any_address_ = !std::ranges::contains(rules.hosts_, bound);
  rules.hosts_.push_back(bound);
  for (const std::string& origin : origins) {
    std::string text = lower_case(origin);
    if (text.ends_with('/')) text.pop_back();
    const auto name = text.find("://") == text.npos ? "" : text.substr(text.find("://") + 3);
    if (!(text.starts_with("http://") || text.starts_with("https://")) || !is_host(name)) {
      return invalid("The origin {} must be written as https://example.org or http://example.org:8000.",
                     quote(origin));
    }
    rules.hosts_.emplace_back(without_port(name));
    rules.origins_.push_back(std::move(text));
  }
  return rules;
}

bool AccessRules::host_allowed(const HttpRequest& request) const {
  const std::string* header = request.header("host");
  if (header == nullptr) return false;
  const std::string lower = lower_case(*header);
  const auto host = without_port(lower);
  return std::ranges::contains(hosts_, host) || (any_address_ && is_address(host));
}

AccessRules::Verdict AccessRules::judge(const HttpRequest& request) const {
  const std::string* origin = request.header("origin");
  if (origin == nullptr) {
    // Images, scripts and links of other sites state no origin.
    const std::string* site = request.header("sec-fetch-site");
    return {.allowed = site == nullptr || *site == "same-origin" || *site == "none", .origin = {}};
  }
  const std::string asks = lower_case(*origin);
  const std::string* host = request.header("host");
  if (host != nullptr && asks == (encrypted_ ? "https://" : "http://") + lower_case(*host)) {
    return {.allowed = true, .origin = {}};
  }
  const bool listed = std::ranges::contains(origins_, asks);
  return {.allowed = listed, .origin = listed ? asks : std::string()};
}

}  // namespace bezel
