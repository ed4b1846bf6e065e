// How kernels read `keys` and `values`, rings of the kind that stands before this text, in fours.
fn key_at(four: u32) -> KvFour {
  let word = keys[kv_place(four)];
  if (!KV_SCALED) { return kv_join(word, word); }
  return kv_join(word, keys[kv_scale_place(four)]);
}
fn value_at(four: u32) -> KvFour {
  let word = values[kv_place(four)];
  if (!KV_SCALED) { return kv_join(word, word); }
  return kv_join(word, values[kv_scale_place(four)]);
}
