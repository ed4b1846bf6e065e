// Sessions as the bytes of a file.
#pragma once
#include "run/session.h"
#include "support.h"

namespace bezel {

inline std::vector<std::byte> saved(const Session& session) {
  std::vector<std::byte> out;
  const Status status = run_now(session.save([&](Bytes bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
    return Status{};
  }));
  EXPECT_TRUE(status) << status.error().message;
  return out;
}

}  // namespace bezel
