// The norm of one head, and its rotation. A thread has PER times two neighbours of the first half and the two of the
// second half that they turn against. HEAD is the head's size, a multiple of 4.
const HALF: u32 = HEAD / 2u;
struct Head {
  low: array<vec2f, PER>,
  high: array<vec2f, PER>,
}

// The first of the two elements, or one beyond the half.
fn head_element(n: u32, thread: u32) -> u32 { return 2u * (thread + n * WG); }

// The head that begins at `x`, divided by its root mean square.
fn normed_head(x: u32, eps: f32, thread: u32) -> Head {
  var head: Head;
  var squares = 0.0;
  for (var n = 0u; n < PER; n++) {
    let i = head_element(n, thread);
    if (i < HALF) {
      head.low[n] = vec2f(arena[x + i], arena[x + i + 1u]);
      head.high[n] = vec2f(arena[x + HALF + i], arena[x + HALF + i + 1u]);
      squares += dot(head.low[n], head.low[n]) + dot(head.high[n], head.high[n]);
    }
  }
  let factor = 1.0 / sqrt(reduce_sum(squares, thread) / f32(HEAD) + eps);
  for (var n = 0u; n < PER; n++) {
    head.low[n] *= factor;
    head.high[n] *= factor;
  }
  return head;
}

// Elements i, i + 1 and i + HALF, i + HALF + 1, turned.
fn turned(low: vec2f, high: vec2f, i: u32, position: u32) -> array<vec2f, 2> {
  let a = turn_at(position, turns[i]);
  let b = turn_at(position, turns[i + 1u]);
  let c = vec2f(a.x, b.x);
  let s = vec2f(a.y, b.y);
  return array<vec2f, 2>(low * c - high * s, low * s + high * c);
}
