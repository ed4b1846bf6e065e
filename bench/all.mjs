// Every size of Gemma 4, natively and as WebAssembly in Node, in one table. Builds nothing: models of random weights are
// written to a folder and removed again, one at a time.
//   node bench/all.mjs [PRESET...] [--bezel FILE] [--folder FOLDER] [--wasm FILE] [--dawn FEATURE,...] [--out FILE.json]
// Presets are those of `bezel synth`; without any: e2b, e4b, 12b, 26b, 31b. --dawn is for Node alone (bench/web.mjs).
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    bezel: { type: 'string', default: 'build/native/bezel' },
    folder: { type: 'string', default: tmpdir() },
    wasm: { type: 'string', default: 'build/web/bezel.wasm' },
    dawn: { type: 'string' },
    out: { type: 'string' },
  },
});

// Large models take fewer tokens; a long context shows whether decoding falls off a cliff.
const runs = {
  e2b: [{ p: 2048, n: 128, d: 512 }, { p: 512, n: 64, d: 32768 }],
  e4b: [{ p: 2048, n: 64, d: 512 }],
  '12b': [{ p: 1024, n: 64, d: 512 }],
  '26b': [{ p: 512, n: 64, d: 512 }],
  '31b': [{ p: 512, n: 32, d: 512 }],
};
const inNode = new Set(['e2b', 'e4b']); // a browser's heap and patience: the smaller ones
const columns = [
  ['model', 5],
  ['host', 7],
  ['context', 8],
  ['decode tok/s', 13],
  ['of bandwidth', 13],
  ['dispatches', 11],
  ['JS ms/token', 12],
  ['prefill tok/s', 14],
];

const print = (cells) => console.log(`| ${cells.map((cell, i) => String(cell).padStart(columns[i][1])).join(' | ')} |`);
const run = (program, args) => JSON.parse(execFileSync(program, args.map(String), { maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'inherit'] }));
const words = ({ p, n, d }) => ['-p', p, '-n', n, '-d', d];

function measure(host, model, size) {
  if (host === 'native') return run(options.bezel, ['bench', model, '--json', ...words(size)]);
  return run(process.execPath, ['bench/web.mjs', model, ...words(size), '--wasm', options.wasm, ...(options.dawn ? ['--dawn', options.dawn] : [])]);
}

const reports = [];
print(columns.map(([name]) => name));
console.log(`|${columns.map(([, width]) => '-'.repeat(width + 2)).join('|')}|`);
for (const preset of positionals.length > 0 ? positionals : Object.keys(runs)) {
  const folder = mkdtempSync(join(options.folder, 'bezel-bench-'));
  try {
    const model = join(folder, `${preset}.gguf`);
    execFileSync(options.bezel, ['synth', preset, '-o', model], { stdio: 'ignore' });
    for (const host of inNode.has(preset) || !(preset in runs) ? ['native', 'node'] : ['native']) {
      for (const size of runs[preset] ?? [{ p: 64, n: 8, d: 16 }]) {
        let report;
        try {
          report = measure(host, model, size);
        } catch (error) {
          print([preset, host, size.d, `failed: ${error.message.split('\n')[0]}`, '', '', '', '']);
          process.exitCode = 1;
          continue;
        }
        reports.push({ preset, host, size, report });
        const share = report.bandwidth_share === undefined || report.bandwidth_share === null ? '' : `${(100 * report.bandwidth_share).toFixed(1)} %`;
        const replay = report.replay ? report.replay.milliseconds_per_token.toFixed(2) : '';
        print([preset, host, size.d, report.decode.tokens_per_second.toFixed(1), share, report.decode.dispatches, replay, report.prefill.tokens_per_second.toFixed(0)]);
      }
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}
if (options.out) writeFileSync(options.out, JSON.stringify(reports, null, 1));
