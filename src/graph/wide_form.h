// How weights lie where products read them, so that all parts begin at multiples of 16 bytes and a thread can
// take 16 at a time: what a file has in pieces of any size is put in another order, a few blocks together, or
// filled up. The numbers stay what they are.
#pragma once
#include <string>
#include <string_view>

#include "base/types.h"
#include "gguf/dtype.h"

namespace bezel {

// Whether there is such a form of a type that is not one as it is: F32, F16, BF16, Q4_K and Q5_K are, where
// rows are whole sixteens of bytes, and have none.
bool has_wide_form(DType type);

// Bytes of a row of such a type.
u64 wide_row_bytes(DType type, u64 cols);

// A row, as it is in the file, becomes one in that form.
void widen_row(DType type, Bytes row, MutableBytes out);

// WGSL that reads it, see format_*.wgsl.
std::string wide_format_source(DType type);

// What that needs to know about codes and scales, where types share a format; else nothing. A function
// `scales` gives the two half floats of a word.
std::string codes_source(DType type, std::string_view scales);

}  // namespace bezel
