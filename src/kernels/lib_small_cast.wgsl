// Small integers in the bytes of a word as floats, by conversion: value = (float - SMALL_ZERO) * SMALL_STEP.
const SMALL_ZERO: f32 = 0.0;
const SMALL_STEP: f32 = 1.0;
fn small4(word: u32) -> vec4f { return vec4f(u8x4(word)); }
