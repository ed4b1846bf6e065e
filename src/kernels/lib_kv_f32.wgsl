// Keys and values in single precision. For fours of numbers, one after the other through all rows of a ring: what a ring
// has of them, what a thread keeps of one, and where it lies. See lib_kv_q8.wgsl for those with a scale.
alias KvWord = vec4f;
alias KvFour = vec4f;
const KV_SCALED: bool = false;
fn kv_place(four: u32) -> u32 { return four; }
fn kv_scale_place(four: u32) -> u32 { return four; }
fn kv_join(word: KvWord, scale: KvWord) -> KvFour { return word; }
fn kv_word(four: KvFour) -> KvWord { return four; }
fn kv_scale(four: KvFour) -> KvWord { return four; }
fn kv_four(four: KvFour) -> vec4f { return four; }
fn kv_pack(four: vec4f, largest: f32) -> KvFour { return four; }
