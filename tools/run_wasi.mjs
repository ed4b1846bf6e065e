// Runs a wasm32-wasi program under Node: node tools/run_wasi.mjs build/web/bezel_tests.wasm [arguments]
// The program sees the repository's root as "." and an empty folder, removed afterwards, as /tmp.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const kTrapped = 134; // what a shell reports for a program that aborts
const kReport = 3; // the file descriptor on which a run tells how its program ended

async function load_wasi() {
  // node:wasi warns that it is experimental as it loads; every other warning still shows.
  const emit = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    if ((rest[0]?.type ?? rest[0]) !== 'ExperimentalWarning') emit.call(process, warning, ...rest);
  };
  return (await import('node:wasi')).WASI;
}

// What the module asks for beside WASI is the web host's side of the engine: the C++ tests do without a GPU here, and
// one that reaches for it fails with the name of what it called.
function without_host(module) {
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    (imports[from] ??= {})[name] = () => {
      throw new Error(`This program runs without a host, but it called ${from}.${name}().`);
    };
  }
  return imports;
}

const report = (code) => writeSync(kReport, String(code));

async function run(program, args) {
  const WASI = await load_wasi();
  const scratch = mkdtempSync(join(tmpdir(), 'bezel-wasi-'));
  try {
    const wasi = new WASI({
      version: 'preview1',
      args: [basename(program), ...args],
      env: { ...process.env, TMPDIR: '/tmp' },
      preopens: { '.': fileURLToPath(new URL('..', import.meta.url)), '/tmp': scratch },
    });
    const module = await WebAssembly.compile(readFileSync(program));
    const imports = { ...without_host(module), wasi_snapshot_preview1: { ...wasi.wasiImport } };
    // The earliest moment at which the result is known: by exit(), or by a return from main().
    imports.wasi_snapshot_preview1.proc_exit = (code) => (report(code), wasi.wasiImport.proc_exit(code));
    const instance = await WebAssembly.instantiate(module, imports);
    const code = wasi.start(instance);
    if (code === 0) report(code);
  } catch (error) {
    if (!(error instanceof WebAssembly.RuntimeError)) throw error;
    console.error(error.stack);
    report(kTrapped);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

// Node 20 sometimes crashes after a long WASI program has ended. The program's own end counts, so it runs in a process
// of its own that reports it; one that ends without a report has failed.
function run_apart(program, args) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url), '--here', program, ...args], {
      stdio: ['inherit', 'inherit', 'inherit', 'pipe'],
    });
    let told = '';
    child.stdio[kReport].setEncoding('utf8').on('data', (text) => (told += text));
    child.on('close', (code, signal) => {
      if (told === '') console.error(`Node ended without a result: ${signal ?? `exit code ${code}`}.`);
      resolve(told === '' ? code || kTrapped : Number.parseInt(told, 10));
    });
  });
}

const [first, ...rest] = process.argv.slice(2);
if (first === undefined) {
  console.error('usage: node tools/run_wasi.mjs PROGRAM.wasm [ARGUMENTS]');
  process.exitCode = 2;
} else if (first === '--here') {
  await run(rest[0], rest.slice(1));
} else {
  process.exitCode = await run_apart(first, rest);
}
