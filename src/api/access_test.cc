#include "api/access.h"

#include "support.h"

namespace bezel {
namespace {

HttpRequest request(std::string host, std::string origin = {}, std::string site = {}) {
  HttpRequest out;
  if (!host.empty()) out.headers.emplace_back("host", std::move(host));
  if (!origin.empty()) out.headers.emplace_back("origin", std::move(origin));
  if (!site.empty()) out.headers.emplace_back("sec-fetch-site", std::move(site));
  return out;
}

AccessRules rules(const char* host, std::vector<std::string> origins = {}, bool encrypted = false) {
  auto made = AccessRules::make(host, origins, encrypted);
  if (!made) ADD_FAILURE() << made.error().message;
  return *made;
}

TEST(Access, HostsOfThisMachineAlone) {
  const AccessRules local = rules("127.0.0.1", {"https://app.example.org"});
  for (const char* host :
       {"localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "app.example.org:8080"}) {
    EXPECT_TRUE(local.host_allowed(request(host))) << host;
  }
  for (const char* host : {"", "evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example",
                           "192.168.0.2", "[::2]", "[::1", ":8080", "evil.example:127.0.0.1"}) {
    EXPECT_FALSE(local.host_allowed(request(host))) << host;
  }
  const AccessRules open = rules("0.0.0.0");
  EXPECT_TRUE(open.host_allowed(request("192.168.0.2:8080")));
  EXPECT_TRUE(open.host_allowed(request("[fe80::1]:8080")));
  EXPECT_FALSE(open.host_allowed(request("evil.example")));
  EXPECT_TRUE(rules("my-machine").host_allowed(request("my-machine:80")));
  EXPECT_TRUE(rules("::1").host_allowed(request("[::1]:80")));
}

TEST(Access, OriginsOnTheList) {
  const AccessRules local = rules("127.0.0.1", {"https://App.example.org/", "http://localhost:5173"});
  const auto judge = [&](const char* origin) { return local.judge(request("localhost:8080", origin)); };
  EXPECT_TRUE(judge("").allowed);
  EXPECT_TRUE(judge("http://localhost:8080").allowed);
  EXPECT_EQ(judge("http://localhost:8080").origin, "");
  EXPECT_TRUE(judge("https://app.example.org").allowed);
  EXPECT_EQ(judge("https://app.example.org").origin, "https://app.example.org");
  EXPECT_EQ(judge("http://localhost:5173").origin, "http://localhost:5173");
  for (const char* origin : {"null", "http://localhost", "http://localhost:8081", "https://localhost:8080",
                             "http://app.example.org", "https://app.example.org.evil.example", "*"}) {
    EXPECT_FALSE(judge(origin).allowed) << origin;
    EXPECT_EQ(judge(origin).origin, "");
  }
  EXPECT_TRUE(rules("127.0.0.1", {}, true).judge(request("localhost:1", "https://localhost:1")).allowed);
}

TEST(Access, WithoutAnOriginTheBrowserSaysWhoAsks) {
  const AccessRules local = rules("127.0.0.1");
  EXPECT_TRUE(local.judge(request("localhost", "", "same-origin")).allowed);
  EXPECT_TRUE(local.judge(request("localhost", "", "none")).allowed);
  EXPECT_FALSE(local.judge(request("localhost", "", "cross-site")).allowed);
  EXPECT_FALSE(local.judge(request("localhost", "", "same-site")).allowed);
}

TEST(Access, OriginsMustBeOrigins) {
  for (const char* origin : {"*", "example.org", "ftp://example.org", "https://", "https://a/b",
                             "https://a b", "https://a\r\nX: y"}) {
    EXPECT_FALSE(AccessRules::make("127.0.0.1", {origin}, false)) << origin;
  }
}

}  // namespace
}  // namespace bezel
