// Rotary angles in fixed point.

// The high word of a * b.
fn multiply_high(a: u32, b: u32) -> u32 {
  let low = (a & 0xFFFFu) * (b & 0xFFFFu);
  let middle = (a >> 16u) * (b & 0xFFFFu) + (low >> 16u);
  let other = (a & 0xFFFFu) * (b >> 16u) + (middle & 0xFFFFu);
  return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u);
}

// Cosine and sine of a turn's fraction (2^32 = once around). The angle is exact at every position, and the polynomials
// are good to single precision, which WGSL does not promise of its own functions.
fn cos_sin(fraction: u32) -> vec2f {
  let quadrant = (fraction + 0x20000000u) >> 30u;
  let x = f32(i32(fraction - (quadrant << 30u))) * 1.4629180792671596e-9;  // 2 pi / 2^32, within pi / 4
  let y = x * x;
  let s = x * (1.0 + y * (-0.16666667 + y * (8.3333310e-3 + y * (-1.9840874e-4 + y * 2.7525562e-6))));
  let c = 1.0 + y * (-0.5 + y * (4.1666642e-2 + y * (-1.3888397e-3 + y * 2.4609622e-5)));
  switch quadrant & 3u {
    case 0u: { return vec2f(c, s); }
    case 1u: { return vec2f(-s, c); }
    case 2u: { return vec2f(-c, -s); }
    default: { return vec2f(s, -c); }
  }
}

// Cosine and sine of `position` times a frequency: turns per position as a 64-bit fraction, low word and high word.
fn turn_at(position: u32, turns: vec2u) -> vec2f {
  return cos_sin(position * turns.y + multiply_high(position, turns.x));
}
