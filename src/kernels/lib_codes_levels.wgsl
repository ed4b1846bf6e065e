// Codes from 0 to 15 that stand for sixteen levels, signed bytes: the n-th of each, all four bytes of a word at a time. Of levels
// 2 i and 2 i + 1, EVEN[i] has the first in every byte, and TURN[i] what makes the second of it. Every bit of the code then halves
// what is left: bits alone, because an array indexed at run time may be put in slow memory.
fn codes16(n: vec4u) -> vec4u {
  const ones = vec4u(0x01010101u);
  let a = (n & ones) * 0xffu;
  let b = ((n >> vec4u(1u)) & ones) * 0xffu;
  let c = ((n >> vec4u(2u)) & ones) * 0xffu;
  let d = ((n >> vec4u(3u)) & ones) * 0xffu;
  let low = one_of(one_of(two_levels(a, EVEN[0], TURN[0]), two_levels(a, EVEN[1], TURN[1]), b),
                   one_of(two_levels(a, EVEN[2], TURN[2]), two_levels(a, EVEN[3], TURN[3]), b), c);
  let high = one_of(one_of(two_levels(a, EVEN[4], TURN[4]), two_levels(a, EVEN[5], TURN[5]), b),
                    one_of(two_levels(a, EVEN[6], TURN[6]), two_levels(a, EVEN[7], TURN[7]), b), c);
  return one_of(low, high, d);
}
fn two_levels(odd: vec4u, even: u32, turn: u32) -> vec4u { return vec4u(even) ^ (odd & vec4u(turn)); }
fn one_of(a: vec4u, b: vec4u, second: vec4u) -> vec4u { return a ^ (second & (a ^ b)); }
