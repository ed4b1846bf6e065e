#include <cstdio>
int main() { std::puts(BEZEL_VERSION); }
