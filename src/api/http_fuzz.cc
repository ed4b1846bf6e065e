// Any bytes are a request, a problem with a status, or the beginning of a longer one.
#include "api/access.h"
#include "api/http.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const bezel::u8* data, std::size_t size) {
  using namespace bezel;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const HttpHead head = parse_head(bytes);
  CHECK(!head.request || (head.problem.status == 0 && head.length <= size && !head.request->path.empty()));
  CHECK(head.problem.status == 0 || head.problem.status >= 400);
  if (head.request) {
    static const auto kRules = AccessRules::make("127.0.0.1", {"https://example.org"}, false);
    (void)kRules->host_allowed(*head.request);
    (void)kRules->judge(*head.request);
  }
  for (const u64 total : {u64{0}, u64{1}, u64{1000}, ~u64{0}}) {
    const ByteRange range = choose_range(bytes, total);
    CHECK(range.first <= total && range.length <= total - range.first);
    CHECK(range.kind != ByteRange::Kind::kPart || range.length > 0);
  }
  (void)etag_listed(bytes, "\"a\"");
  if (const auto text = percent_decode(bytes)) CHECK(percent_decode(percent_encode(*text)) == text);
  return 0;
}
