// CHECK states what our own code guarantees. It is never used on input from outside.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                            \
  do {                                                                                              \
    if (!(condition)) [[unlikely]] {                                                                \
      std::fprintf(stderr, "bezel: internal error at %s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                 \
    }                                                                                               \
  } while (false)
