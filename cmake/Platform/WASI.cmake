# CMake has no description of this system; it needs only the suffix of programs.
set(CMAKE_EXECUTABLE_SUFFIX ".wasm")
