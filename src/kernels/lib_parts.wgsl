// The keys that a token sees, shared out over p.parts workgroups. A part of less than LEAST keys would cost more to merge
// than it saves, so that the last parts may have none.
const LEAST: u32 = 16u;
struct Seen {
  first: u32,
  count: u32,
  share: u32,  // keys of a part, but for the last one that has some
}

fn seen_at(position: f32, last: f32) -> Seen {
  var first = 0u;
  if (p.window > 0u && u32(position) >= p.window) { first = u32(position) + 1u - p.window; }
  let count = u32(last) + 1u - first;
  let share = (count + p.parts - 1u) / p.parts;
  return Seen(first, count, (share + LEAST - 1u) / LEAST * LEAST);
}
