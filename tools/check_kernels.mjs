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

const names = readdirSync(folder).filter((name) => name.endsWith('.wgsl')).sort();
let bad = 0, tooLarge = 0;
for (const name of names) {
  const code = readFileSync(join(folder, name), 'utf8');
  device.pushErrorScope('validation');
  const module = device.createShaderModule({code});
  const {messages} = await module.getCompilationInfo();
  device.createComputePipeline({layout: 'auto', compute: {module}});
  const error = await device.popErrorScope();
  if (messages.length === 0 && error === null) continue;
  // The null adapter has the least memory that WebGPU allows, and subgroups of up to 128 threads.
  if (messages.length === 0 && /total use of workgroup storage|maxSubgroupSize/.test(error.message)) {
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
