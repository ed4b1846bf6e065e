// How kernels write `keys` and `values`, see lib_rings.wgsl: of fours that share a scale, the first writes it.
fn put_key(four: u32, value: KvFour) {
  keys[kv_place(four)] = kv_word(value);
  if (KV_SCALED && four % 8u == 0u) { keys[kv_scale_place(four)] = kv_scale(value); }
}
fn put_value(four: u32, value: KvFour) {
  values[kv_place(four)] = kv_word(value);
  if (KV_SCALED && four % 8u == 0u) { values[kv_scale_place(four)] = kv_scale(value); }
}
