// A leg of relay.wgsl whose weights are of one type: lib_words_*.wgsl and lib_digits_*.wgsl say how they are read and
// multiplied. A relay has this text once for each type, its names made different.

// A vector that norms and maybe a residual give, COLS numbers of it, as in lib_vector_norms.wgsl; as digits.
fn bring_normed(n: u32, first_row: u32, thread: u32) {
  const times_round = ((COLS + 255u) / 256u * 16u + WG - 1u) / WG;  // of whole fours of units
  var kept = array<Sixteen, times_round>();  // said outright: without a value some compilers keep that of the last time
  var added = array<Sixteen, times_round>();
  var next_weights = array<Sixteen, times_round>();
  var squares = 0.0;
  let add = has(n, ADD);
  for (var t = 0u; t < times_round; t++) {
    let own = thread + t * WG;
    if (own < COLS / 16u) {
      let quarter = quarter_place(own);
      // Weights first: they are there, and the rest has to be waited for.
      next_weights[t] = weights_quarter(p.legs[n].next_weight, quarter);
      let norm_weights = weights_quarter(p.legs[n].norm_weight, quarter);
      if (add) { added[t] = added_quarter(n, quarter); }
      kept[t] = x_quarter(n, quarter);
      squares += squares_of(kept[t]);
      if (add) { kept[t] = times(kept[t], norm_weights, 1.0); }
    }
  }
  if (add) {
    let factor = p.legs[n].norm_scale / sqrt(reduce_sum(squares, thread) / f32(COLS) + p.legs[n].eps);
    let scale = p.legs[n].sum_scale;
    squares = 0.0;
    for (var t = 0u; t < times_round; t++) {
      let x = kept[t];
      let y = added[t];
      kept[t] = Sixteen((y.a + x.a * factor) * scale, (y.b + x.b * factor) * scale, (y.c + x.c * factor) * scale,
                        (y.d + x.d * factor) * scale);
      squares += squares_of(kept[t]);
    }
  }
  var next_factor = 1.0;
  if (has(n, NEXT)) {
    next_factor = p.legs[n].next_scale / sqrt(reduce_sum(squares, thread) / f32(COLS) + p.legs[n].next_eps);
  }
  // What is kept for later, every workgroup keeps its share of: others wait for the last one.
  let share = p.legs[n].share;
  let keepers = (p.legs[n].rows + share - 1u) / share;
  for (var t = 0u; t < times_round; t++) {
    let own = thread + t * WG;
    let keeps = own < COLS / 16u && own % keepers == first_row / share;
    let quarter = quarter_place(own);
    if (keeps && add) { keep_sixteen(p.legs[n].sum, has(n, MAIL_SUM), p.legs[n].sum_mail, quarter, kept[t]); }
    if (has(n, NEXT)) { kept[t] = times(kept[t], next_weights[t], next_factor); }
    if (keeps && has(n, KEEP)) {
      keep_sixteen(p.legs[n].next, has(n, MAIL_NEXT), p.legs[n].next_mail, quarter, kept[t]);
    }
    tile_fours(own * 4u, kept[t].a, kept[t].b, kept[t].c, kept[t].d);
  }
}

// Units of a vector as it is, from `first` on; beyond the last one zeros.
fn bring_plain(n: u32, first: u32, thread: u32) {
  let quarters = p.legs[n].lanes * 4u;
  for (var done = 0u; done < quarters; done += WG) {
    let own = done + thread;
    var v = Sixteen(vec4f(), vec4f(), vec4f(), vec4f());
    if (own < quarters && first + own / 4u < p.legs[n].units) { v = x_quarter(n, quarter_place(first * 4u + own)); }
    tile_fours(own * 4u, v.a, v.b, v.c, v.d);
  }
}

// The workgroup's rows, from `first_row` on, into totals.
fn multiply_rows(n: u32, first_row: u32, thread: u32) {
  let lanes = p.legs[n].lanes;
  let teams = p.legs[n].teams;
  let units = p.legs[n].units;
  let busy = thread < lanes * teams;
  let lane = thread % lanes;
  let team = min(thread / lanes, teams - 1u);
  let pair = select(0u, 1u, has(n, PAIR));
  // Beyond a thread's last two rows, these again: they are near, and it is cheaper than to ask.
  let count = min(p.legs[n].share, p.legs[n].rows - first_row);
  let begin = p.legs[n].begin + (first_row + min(team, count - 1u)) * p.legs[n].row_bytes;
  let own = (max(count, team + 1u) - team + teams - 1u) / teams;
  let step = p.legs[n].step;
  let apart = p.legs[n].apart;
  let last = begin + ((own + 1u - pair) / (2u - pair) - 1u) * step;
  for (var first = 0u; first < units; first += lanes) {
    let u = min(first + lane, units - 1u);  // beyond the last one zeros are held
    var at = begin;
    // Of the first two rows one is asked for before the vector comes: the words of both would leave it too few registers.
    var next = array<UnitWords, 2>(unit_words(at, u, u), unit_words(at, u, u));
    workgroupBarrier();
    if (has(n, ADD | NEXT)) {
      bring_normed(n, first_row, thread);
    } else {
      bring_plain(n, first, thread);
    }
    workgroupBarrier();
    next[1] = unit_words(at + apart, u, u);
    let held = UnitDigits(plane(0u, lane), plane(4u, lane), plane(8u, lane), four(sums[lane]), four(factors[lane]));
    for (var done = 0u; done < p.legs[n].each; done += p.legs[n].batch) {
      let end = min(done + p.legs[n].batch, p.legs[n].each);
      workgroupBarrier();
      var early: vec2f;
      var kept = vec4f();
      for (var i = done; i < end; i += 2u) {
        at = min(at + step, last);
        var found: array<f32, 2>;
        for (var one = 0u; one < 2u; one++) {
          let now = next[one];
          next[one] = unit_words(at + one * apart, u, u);
          found[one] = unit_dot(now, u, held);
        }
        let late = vec2f(found[0], found[1]);
        let second = (i & 2u) == 2u;
        if (second || i + 2u >= end) {
          let own = i - done;
          kept = gathered(kept, select(vec4f(late, 0.0, 0.0), vec4f(early, late), second), own & ~3u, lane);
          if (busy && ((own + 4u) % 16u < 4u || i + 2u >= end)) {
            words[(own / 16u * teams + team) * lanes + lane] = bitcast<vec4u>(kept);
          }
        }
        early = late;
      }
      add_up(n, done, end, first > 0u, thread);
    }
  }
}
