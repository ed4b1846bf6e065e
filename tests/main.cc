#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int result = RUN_ALL_TESTS();
#ifdef __wasm__
  // Node 20 sometimes crashes as a long program winds up; what it has to say is said by then.
  std::fflush(nullptr);
  std::_Exit(result);
#endif
  return result;
}
