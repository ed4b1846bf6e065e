// Compiles kernels for a GPU that has every feature, which need not exist: Dawn's null backend.
// usage: BEZEL_KERNEL_TEXTS=DIR build/native/bezel_tests --gtest_filter='KernelTexts.*'; node tools/check_kernels.mjs DIR
import {readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';

import {create} from 'webgpu';

const folder = process.argv[2];
const gpu = create(['backend=null', 'enable-dawn-features=allow_unsafe_apis']);
const adapter = await gpu.requestAdapter();
const wanted = ['shader-f16', 'subgroups', 'chromium-experimental-subgroup-matrix'];
const device = await adapter.requestDevice({requiredFeatures: wanted.filter((name) => adapter.features.has(name))});

// Writes of a part of a vector that threads share: a GPU may write the whole of it, and with it what others wrote. Where one thread
// alone writes, write1 of lib_arena_fours.wgsl does so.
function partsOfVectors(code) {
  const aliases = new Map([...code.matchAll(/^alias (\w+) = (.+);/gm)].map(([, name, type]) => [name, type]));
  const found = [];
  for (const [, name, declared] of code.matchAll(/^(?:@.*)?var<(?:workgroup|storage, read_write)> (\w+): (.+?);/gm)) {
    const type = declared.replace(/\w+/g, (word) => aliases.get(word) ?? word);
    if (!/vec[234]/.test(type)) continue;
    const depth = type.split('array<').length - 1;
    for (const {index} of code.matchAll(new RegExp(`\\b${name}(?=[[.])`, 'g'))) {
      let at = index + name.length, indices = 0;
      while (code[at] === '[') {
        for (let open = 0; ; at++) {
          if (code[at] === '[') open++;
          if (code[at] === ']' && --open === 0) break;
        }
        at++;
        indices++;
      }
      const part = indices > depth || code[at] === '.';
      const line = code.slice(code.lastIndexOf('\n', index) + 1, code.indexOf('\n', index));
      if (part && /^(\.[xyzw]+)? ([-+*/%&|^]|<<|>>)?= /.test(code.slice(at, at + 12)) && !line.startsWith('fn write1(')) found.push(line.trim());
    }
  }
  return found;
}

const names = readdirSync(folder).filter((name) => name.endsWith('.wgsl')).sort();
let bad = 0, tooLarge = 0;
for (const name of names) {
  const code = readFileSync(join(folder, name), 'utf8');
  for (const line of partsOfVectors(code)) {
    bad++;
    console.log(`${name}: writes a part of a vector that threads share: ${line}`);
  }
  device.pushErrorScope('validation');
  const module = device.createShaderModule({code});
  const {messages} = await module.getCompilationInfo();
  device.createComputePipeline({layout: 'auto', compute: {module}});
  const error = await device.popErrorScope();
  if (messages.length === 0 && error === null) continue;
  // The null adapter has the least memory and threads that WebGPU allows, and subgroups of up to 128 threads.
  if (messages.length === 0 && /total use of workgroup storage|workgroup_size|maxSubgroupSize/.test(error.message)) {
    tooLarge++;
    continue;
  }
  bad++;
  const title = code.slice(0, code.indexOf('\n'));
  for (const m of messages) console.log(`${name} ${title}: line ${m.lineNum}: ${m.type}: ${m.message}`);
  if (error !== null) console.log(`${name} ${title}: ${error.message}`);
}
console.log(`${names.length} kernels, ${bad} refused; ${tooLarge} compiled, but are too large for this adapter`);
process.exit(bad > 0 || names.length === 0 ? 1 : 0);
