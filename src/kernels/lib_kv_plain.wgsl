// What types of keys and values without a scale share; see lib_kv_q8.wgsl for one that has it. For fours of numbers, one after the
// other through all rows of a ring: what the ring has of one (KvWord), what a thread keeps of it, and where it lies.
alias KvFour = KvWord;
const KV_SCALED: bool = false;
fn kv_place(four: u32) -> u32 { return four; }
fn kv_scale_place(four: u32) -> u32 { return four; }
fn kv_join(word: KvWord, scale: KvWord) -> KvFour { return word; }
fn kv_word(four: KvFour) -> KvWord { return four; }
fn kv_scale(four: KvFour) -> KvWord { return four; }
