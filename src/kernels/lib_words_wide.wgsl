// Weights as 16 bytes at a time, for formats all of whose parts begin at multiples of that.
fn words16_at(at: u32) -> vec4u { return word(at / 16u); }
fn word_at(at: u32) -> u32 { return word(at / 16u)[(at >> 2u) & 3u]; }
