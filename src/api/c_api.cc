// The C interface that WebAssembly exports: the only extern "C" of the project.
#define EXPORT(name) __attribute__((export_name(#name), used))

extern "C" EXPORT(bezel_version) const char* bezel_version() { return BEZEL_VERSION; }
