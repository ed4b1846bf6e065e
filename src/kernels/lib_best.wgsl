// The order of candidates: larger values first, then lower ids. Values are compared as integers, because a GPU may assume
// that no number is infinite or not a number; those that are none come first, where they are seen.
const NOTHING: u32 = 0u;  // a key below every number's
const KEY_OF_MINUS_INFINITY: u32 = 0x007fffffu;
const KEY_OF_INFINITY: u32 = 0xff800000u;
const KEY_OF_NAN: u32 = 0xfffffffeu;
const BEFORE_ALL: u32 = 0xffffffffu;  // a key above every number's

fn key_of(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) { return KEY_OF_NAN; }
  if (size == 0u) { return 0x80000000u; }  // both zeros
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

fn is_before(a: vec2u, b: vec2u) -> bool {  // of (key, id)
  return a.x > b.x || (a.x == b.x && a.y < b.y);
}

var<workgroup> best_slots: array<vec2u, WG>;
var<workgroup> best_parts: array<vec2u, 8>;

// The first of the WG threads' (key, id), for every thread; two barriers in all.
fn reduce_best(mine: vec2u, thread: u32) -> vec2u {
  best_slots[thread] = mine;
  workgroupBarrier();
  if (thread < 8u) {
    var best = best_slots[thread * (WG / 8u)];
    for (var i = 1u; i < WG / 8u; i++) {
      let other = best_slots[thread * (WG / 8u) + i];
      if (is_before(other, best)) { best = other; }
    }
    best_parts[thread] = best;
  }
  workgroupBarrier();
  var best = best_parts[0];
  for (var i = 1u; i < 8u; i++) {
    if (is_before(best_parts[i], best)) { best = best_parts[i]; }
  }
  return best;
}
