// Debian's compiler-rt for wasm32 is built with a stack protector that its wasi-libc does not provide.
#include <stdint.h>
uintptr_t __stack_chk_guard = 0x00000aff;
_Noreturn void __stack_chk_fail(void) { __builtin_trap(); }
