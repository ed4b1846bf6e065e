// A leg of relay.wgsl whose weights are of one type: lib_words_*.wgsl and lib_digits_*.wgsl say how they are read and
// multiplied. A relay has this text once for each type, its names made different.

// A vector that norms and maybe a residual give, COLS numbers of it, as in lib_vector_norms.wgsl; as digits.
fn bring_normed(leg: Leg, first_group: bool, thread: u32) {
  const times_round = (COLS / 16u + WG - 1u) / WG;
  var kept = array<Sixteen, times_round>();  // said outright: without a value some compilers keep that of the last time
  var added = array<Sixteen, times_round>();
  var next_weights = array<Sixteen, times_round>();
  var squares = 0.0;
  let add = has(leg.flags, ADD);
  for (var t = 0u; t < times_round; t++) {
    let n = thread + t * WG;
    if (n < COLS / 16u) {
      let quarter = quarter_place(n);
      // Weights first: they are there, and the rest has to be waited for.
      next_weights[t] = weights_quarter(leg.next_weight, quarter);
      let norm_weights = weights_quarter(leg.norm_weight, quarter);
      if (add) { added[t] = added_quarter(leg, quarter); }
      kept[t] = x_quarter(leg, quarter);
      squares += squares_of(kept[t]);
      if (add) { kept[t] = times(kept[t], norm_weights, 1.0); }
    }
  }
  if (add) {
    let factor = leg.norm_scale / sqrt(reduce_sum(squares, thread) / f32(COLS) + leg.eps);
    squares = 0.0;
    for (var t = 0u; t < times_round; t++) {
      let x = kept[t];
      let y = added[t];
      kept[t] = Sixteen((y.a + x.a * factor) * leg.sum_scale, (y.b + x.b * factor) * leg.sum_scale,
                        (y.c + x.c * factor) * leg.sum_scale, (y.d + x.d * factor) * leg.sum_scale);
      squares += squares_of(kept[t]);
    }
  }
  var next_factor = 1.0;
  if (has(leg.flags, NEXT)) { next_factor = leg.next_scale / sqrt(reduce_sum(squares, thread) / f32(COLS) + leg.next_eps); }
  for (var t = 0u; t < times_round; t++) {
    let n = thread + t * WG;
    let mine = n < COLS / 16u;
    let quarter = quarter_place(n);
    if (first_group && mine && add) { keep_sixteen(leg.sum, has(leg.flags, MAIL_SUM), leg.sum_mail, quarter, kept[t]); }
    if (has(leg.flags, NEXT)) { kept[t] = times(kept[t], next_weights[t], next_factor); }
    if (first_group && mine && has(leg.flags, KEEP)) {
      keep_sixteen(leg.next, has(leg.flags, MAIL_NEXT), leg.next_mail, quarter, kept[t]);
    }
    tile_fours(n * 4u, kept[t].a, kept[t].b, kept[t].c, kept[t].d);
  }
}

// Units of a vector as it is, from `first` on; beyond the last one zeros.
fn bring_plain(leg: Leg, first: u32, thread: u32) {
  for (var done = 0u; done < leg.lanes * 4u; done += WG) {
    let n = done + thread;
    var v = Sixteen(vec4f(), vec4f(), vec4f(), vec4f());
    if (n < leg.lanes * 4u && first + n / 4u < leg.units) { v = x_quarter(leg, quarter_place(first * 4u + n)); }
    tile_fours(n * 4u, v.a, v.b, v.c, v.d);
  }
}

// The workgroup's rows, from `first_row` on, into totals.
fn multiply_rows(leg: Leg, first_row: u32, thread: u32) {
  let busy = thread < leg.lanes * leg.teams;
  let lane = thread % leg.lanes;
  let team = min(thread / leg.lanes, leg.teams - 1u);
  let pair = select(0u, 1u, has(leg.flags, PAIR));
  // Beyond a thread's last two rows, these again: they are near, and it is cheaper than to ask.
  let count = min(leg.share, leg.rows - first_row);
  let begin = leg.begin + (first_row + min(team, count - 1u)) * leg.row_bytes;
  let own = (max(count, team + 1u) - team + leg.teams - 1u) / leg.teams;
  let last = begin + ((max(own, 1u) + 1u - pair) / (2u - pair) - 1u) * leg.step;
  for (var first = 0u; first < leg.units; first += leg.lanes) {
    let u = min(first + lane, leg.units - 1u);  // beyond the last one zeros are held
    var at = begin;
    var next = array<UnitWords, 2>(unit_words(at, u, u), unit_words(at + leg.apart, u, u));
    workgroupBarrier();
    if (has(leg.flags, ADD | NEXT)) {
      bring_normed(leg, first_row == 0u, thread);
    } else {
      bring_plain(leg, first, thread);
    }
    workgroupBarrier();
    let held = UnitDigits(plane(0u, lane), plane(4u, lane), plane(8u, lane), four(sums[lane]), four(factors[lane]));
    for (var done = 0u; done < leg.each; done += leg.batch) {
      let end = min(done + leg.batch, leg.each);
      workgroupBarrier();
      var early: vec2f;
      for (var i = done; i < end; i += 2u) {
        at = min(at + leg.step, last);
        var found: array<f32, 2>;
        for (var one = 0u; one < 2u; one++) {
          let now = next[one];
          next[one] = unit_words(at + one * leg.apart, u, u);
          found[one] = unit_dot(now, u, held);
        }
        let late = vec2f(found[0], found[1]);
        let second = (i & 2u) == 2u;
        if (busy && (second || i + 2u >= end)) {
          words[((i - done) / 4u * leg.teams + team) * leg.lanes + lane] =
            bitcast<vec4u>(select(vec4f(late, 0.0, 0.0), vec4f(early, late), second));
        }
        early = late;
      }
      add_up(leg, done, end, first > 0u, thread);
    }
  }
}
