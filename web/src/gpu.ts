// WebGPU for src/gpu/device_web.cc: devices, buffers, pipelines and programs by number. The per-token work is
// the loop of `replay`.

import { type Heap } from './heap.js';
import { BezelError, type ErrorKind } from './protocol.js';

// Node has no such globals.
const usage = { mapRead: 1, copySrc: 4, copyDst: 8, uniform: 64, storage: 128, queryResolve: 512 };
const mapForReading = 1;
const queriesAtOnce = 4096;
/** Reads up to this size share a few staging buffers; larger ones get their own. */
const smallRead = 64 << 10;

/** Launches side by side: `replay` goes over them once a token and looks nothing up. Empty until all are compiled. */
interface Program {
  pipelines: GPUComputePipeline[];
  groups: GPUBindGroup[];
  /** Three numbers for each. */
  grids: Uint32Array;
  params: GPUBuffer;
  ready: boolean;
}

/** Bytes on their way into a buffer that can be read. */
interface Reading {
  staging: GPUBuffer;
  skip: number;
  length: number;
  mapped: Promise<undefined>;
}

interface Wanted {
  f16: boolean;
  subgroups: boolean;
  timestamps: boolean;
  subgroup_matrix: boolean;
  integer_dots: boolean;
  max_binding: number;
  max_storage_bindings: number;
  max_invocations: number;
}

const subgroupMatrix = 'chromium-experimental-subgroup-matrix' as GPUFeatureName;

class OpenDevice {
  readonly buffers = new Map<number, GPUBuffer>();
  readonly programs = new Map<number, Program>();
  /** Each with its label; all that were asked for compile side by side. */
  private readonly pipelines: { label: string; made: Promise<GPUComputePipeline> }[] = [];
  private readonly pipelineByText = new Map<string, number>();
  private readonly readings = new Map<number, Reading>();
  private readonly staging: GPUBuffer[] = [];
  private readonly checks = new Set<Promise<void>>();
  private error: { kind: ErrorKind; message: string } | undefined;
  private lost = false;
  private nextId = 0;
  /** Milliseconds spent in `submit` so far. */
  submitting = 0;

  constructor(
    readonly device: GPUDevice,
    private readonly heap: Heap,
    private readonly waiting: Waiting,
  ) {
    void device.lost.then((info) => {
      this.error = {
        kind: 'device-lost',
        message: `The GPU was lost (${info.message || info.reason}). Open it again and reload the model.`,
      };
      this.lost = true;
    });
    device.onuncapturederror = (event) => this.note(event.error, '');
  }

  private note(error: GPUError | null, label: string): void {
    if (error === null || this.error !== undefined) return;
    // By name: Node has no global GPUOutOfMemoryError to compare with.
    const memory = error.constructor.name === 'GPUOutOfMemoryError';
    this.error = {
      kind: memory ? 'memory' : 'invalid',
      message: memory
        ? `The GPU has no memory left for ${label || 'this'}: ${error.message}`
        : `${label ? `Kernel ${label}` : 'The GPU refused'}: ${error.message}`,
    };
  }

  /** The first error since it was last asked for, as a number for the engine; a loss stays. */
  status(): number {
    const error = this.error;
    if (error === undefined) return 0;
    if (!this.lost) this.error = undefined;
    return this.heap.failure(error.kind, error.message);
  }

  /** settle() waits for `work`. */
  private expect(work: Promise<void>): void {
    const check = work
      .catch(() => {}) // the device was lost, which is told elsewhere
      .finally(() => this.checks.delete(check));
    this.checks.add(check);
  }

  /** Runs `make`; an error of it is noted later, under this label. */
  private checked<T>(filter: GPUErrorFilter, label: string, make: () => T): T {
    this.device.pushErrorScope(filter);
    const made = make();
    this.expect(this.device.popErrorScope().then((error) => this.note(error, label)));
    return made;
  }

  private async checksDone(): Promise<void> {
    while (this.checks.size > 0) await this.waiting(Promise.all(this.checks)); // one may lead to another
  }

  async settle(): Promise<number> {
    await this.waiting(this.device.queue.onSubmittedWorkDone()).catch(() => {});
    await this.checksDone();
    return this.status();
  }

  makeBuffer(size: number, label: string): number {
    const all = usage.storage | usage.uniform | usage.copySrc | usage.copyDst;
    const buffer = this.checked('out-of-memory', label, () => this.device.createBuffer({ size, usage: all, label }));
    this.buffers.set(++this.nextId, buffer);
    return this.nextId;
  }

  pipeline(code: string, label: string): number {
    const known = this.pipelineByText.get(code);
    if (known !== undefined) return known;
    this.device.pushErrorScope('validation');
    const module = this.device.createShaderModule({ code, label });
    const checked = this.device.popErrorScope();
    const made = this.device
      .createComputePipelineAsync({ label, layout: 'auto', compute: { module, entryPoint: 'main' } })
      .catch(async (error: unknown) => {
        throw (await checked) ?? error; // what is wrong with the text explains the rest
      });
    for (const promise of [checked, made]) promise.catch(() => {}); // whoever makes a program of it hears of it
    this.pipelines.push({ label, made });
    this.pipelineByText.set(code, this.pipelines.length - 1);
    return this.pipelines.length - 1;
  }

  /** Words as src/gpu/device_web.cc writes them. */
  makeProgram(words: Uint32Array): number {
    const dispatches: { pipeline: number; grid: [number, number, number]; params: Uint32Array; bindings: Uint32Array }[] = [];
    for (let at = 0; at < words.length; ) {
      const [pipeline, x, y, z, paramWords, bindings] = words.subarray(at, at + 6) as unknown as number[];
      at += 6;
      const params = words.subarray(at, at + paramWords!);
      at += paramWords!;
      dispatches.push({ pipeline: pipeline!, grid: [x!, y!, z!], params, bindings: words.subarray(at, at + 5 * bindings!) });
      at += 5 * bindings!;
    }
    const alignment = this.device.limits.minUniformBufferOffsetAlignment;
    const most = Math.max(alignment, ...dispatches.map((dispatch) => 4 * dispatch.params.length));
    const slot = Math.ceil(most / alignment) * alignment; // room for the largest
    const size = Math.max(1, dispatches.length) * slot;
    const params = this.device.createBuffer({ size, usage: usage.uniform | usage.copyDst, label: 'params' });
    const all = new Uint32Array(size / 4);
    const grids = new Uint32Array(3 * dispatches.length);
    const launches = dispatches.map((dispatch, i) => {
      all.set(dispatch.params, (i * slot) / 4);
      grids.set(dispatch.grid, 3 * i);
      const entries: GPUBindGroupEntry[] = [
        { binding: 0, resource: { buffer: params, offset: i * slot, size: dispatch.params.length * 4 } },
      ];
      for (let b = 0; 5 * b < dispatch.bindings.length; b++) {
        const [id, offset, offsetHigh, bytes, bytesHigh] = dispatch.bindings.subarray(5 * b, 5 * b + 5) as unknown as number[];
        entries.push({
          binding: b + 1,
          resource: {
            buffer: this.buffers.get(id!)!,
            offset: offset! + offsetHigh! * 2 ** 32,
            size: bytes! + bytesHigh! * 2 ** 32,
          },
        });
      }
      return { pipeline: this.pipelines[dispatch.pipeline]!, entries };
    });
    this.device.queue.writeBuffer(params, 0, all);
    const program: Program = { pipelines: [], groups: [], grids, params, ready: false };
    this.programs.set(++this.nextId, program);
    this.expect(this.finishProgram(this.nextId, program, launches));
    return this.nextId;
  }

  /** Bind groups need the layouts of compiled pipelines. */
  private async finishProgram(
    id: number,
    program: Program,
    launches: { pipeline: { label: string; made: Promise<GPUComputePipeline> }; entries: GPUBindGroupEntry[] }[],
  ): Promise<void> {
    for (const { pipeline } of launches) {
      try {
        program.pipelines.push(await pipeline.made);
      } catch (error) {
        this.note(error as GPUError, pipeline.label);
        return;
      }
    }
    if (this.programs.get(id) !== program) return; // destroyed meanwhile, perhaps with its buffers
    program.groups = this.checked('validation', 'program', () =>
      launches.map(({ entries }, i) => this.device.createBindGroup({ layout: program.pipelines[i]!.getBindGroupLayout(0), entries })),
    );
    program.ready = true;
  }

  destroyProgram(id: number): void {
    this.programs.get(id)?.params.destroy();
    this.programs.delete(id);
  }

  /** Launches [first, end) of a program. */
  private static replay(pass: GPUComputePassEncoder, program: Program, first: number, end: number): void {
    const { pipelines, groups, grids } = program;
    let last: GPUComputePipeline | undefined;
    for (let i = first; i < end; i++) {
      const pipeline = pipelines[i]!;
      if (pipeline !== last) pass.setPipeline((last = pipeline));
      pass.setBindGroup(0, groups[i]!);
      const [x, y, z] = [grids[3 * i]!, grids[3 * i + 1]!, grids[3 * i + 2]!];
      // Node checks and converts every argument that is there.
      if (y === 1 && z === 1) pass.dispatchWorkgroups(x);
      else pass.dispatchWorkgroups(x, y, z);
    }
  }

  private encode(encoder: GPUCommandEncoder, id: number): void {
    const program = this.programs.get(id)!;
    const pass = encoder.beginComputePass();
    OpenDevice.replay(pass, program, 0, program.groups.length);
    pass.end();
  }

  /** 0 if the program can run. */
  private unready(id: number): number {
    if (this.programs.get(id)!.ready) return 0;
    return this.status() || this.heap.failure('invalid', 'A program was run before its kernels were compiled.');
  }

  run(id: number): number {
    const unready = this.unready(id);
    if (unready !== 0) return unready;
    const encoder = this.device.createCommandEncoder();
    this.encode(encoder, id);
    this.submit(encoder);
    return this.status();
  }

  private submit(encoder: GPUCommandEncoder): void {
    const commands = encoder.finish();
    const begin = performance.now();
    this.device.queue.submit([commands]);
    this.submitting += performance.now() - begin;
  }

  async profile(id: number, at: number): Promise<number> {
    const unready = this.unready(id);
    if (unready !== 0) return unready;
    const program = this.programs.get(id)!;
    const all = program.groups.length;
    for (let first = 0; first < all; first += queriesAtOnce / 2) {
      const some = Math.min(all - first, queriesAtOnce / 2);
      const querySet = this.device.createQuerySet({ type: 'timestamp', count: 2 * some });
      const resolved = this.device.createBuffer({ size: 16 * some, usage: usage.queryResolve | usage.copySrc });
      const encoder = this.device.createCommandEncoder();
      for (let i = 0; i < some; i++) {
        const timestampWrites = { querySet, beginningOfPassWriteIndex: 2 * i, endOfPassWriteIndex: 2 * i + 1 };
        const pass = encoder.beginComputePass({ timestampWrites });
        OpenDevice.replay(pass, program, first + i, first + i + 1);
        pass.end();
      }
      encoder.resolveQuerySet(querySet, 0, 2 * some, resolved, 0);
      const stamps = new BigUint64Array(2 * some);
      await this.take(this.copyOut(encoder, resolved, 0, 16 * some), new Uint8Array(stamps.buffer));
      resolved.destroy();
      querySet.destroy();
      const out = new BigUint64Array(this.heap.memory!.buffer, at + 8 * first, some);
      for (let i = 0; i < some; i++) {
        const [begin, end] = [stamps[2 * i]!, stamps[2 * i + 1]!];
        out[i] = end > begin ? end - begin : 0n;
      }
    }
    return this.status();
  }

  /** Runs a program, unless it is 0, and copies what is then in the buffer; gives the reading's number. */
  startRead(program: number, buffer: number, offset: number, length: number): number {
    const unready = program === 0 ? 0 : this.unready(program);
    if (unready !== 0) return unready;
    const encoder = this.device.createCommandEncoder();
    if (program !== 0) this.encode(encoder, program);
    const reading = this.copyOut(encoder, this.buffers.get(buffer)!, offset, length);
    const status = this.status();
    if (status !== 0) {
      this.giveUp(reading);
      return status;
    }
    this.readings.set(++this.nextId, reading);
    return this.nextId;
  }

  async finishRead(id: number, at: number): Promise<number> {
    const reading = this.readings.get(id)!;
    this.readings.delete(id);
    await this.take(reading, undefined, at);
    return this.status();
  }

  dropRead(id: number): void {
    this.giveUp(this.readings.get(id)!);
    this.readings.delete(id);
  }

  private copyOut(encoder: GPUCommandEncoder, from: GPUBuffer, offset: number, length: number): Reading {
    const begin = Math.floor(offset / 4) * 4; // copies want multiples of four
    const size = Math.ceil((offset + length) / 4) * 4 - begin;
    const small = size <= smallRead;
    const staging =
      (small ? this.staging.pop() : undefined) ??
      this.device.createBuffer({ size: small ? smallRead : size, usage: usage.mapRead | usage.copyDst, label: 'read back' });
    encoder.copyBufferToBuffer(from, begin, staging, 0, size);
    this.submit(encoder);
    const mapped = staging.mapAsync(mapForReading, 0, size);
    mapped.catch(() => {}); // whoever takes it hears of it; nobody has to
    return { staging, skip: offset - begin, length, mapped };
  }

  /** Waits for the bytes and puts them into `out`, or into the engine's memory, which may grow until then. */
  private async take({ staging, skip, length, mapped }: Reading, out: Uint8Array | undefined, at = 0): Promise<void> {
    try {
      await this.waiting(mapped);
    } catch (error) {
      staging.destroy();
      await this.checksDone();
      const told = this.error;
      throw told ? new BezelError(told.kind, told.message) : new BezelError('io', `Reading from the GPU failed: ${(error as Error).message}`);
    }
    const range = staging.getMappedRange(0, Math.ceil((skip + length) / 4) * 4);
    (out ?? this.heap.bytes(at, length)).set(new Uint8Array(range, skip, length));
    staging.unmap();
    if (staging.size === smallRead) this.staging.push(staging);
    else staging.destroy();
  }

  private giveUp({ staging }: Reading): void {
    staging.destroy();
  }

  close(): void {
    for (const buffer of [...this.buffers.values(), ...this.staging]) buffer.destroy();
    for (const reading of this.readings.values()) this.giveUp(reading);
    for (const id of [...this.programs.keys()]) this.destroyProgram(id);
    this.device.destroy();
  }
}

function describe(info: GPUAdapterInfo, device: GPUDevice, integerDots: boolean): Record<string, unknown> {
  const name = info.description || info.device || info.architecture || 'a GPU without a name';
  const told = `${info.vendor} ${info.architecture} ${info.device} ${info.description}`;
  return {
    name,
    vendor: info.vendor,
    backend: 'WebGPU',
    // No page is told the driver's version: the browser's stands for it.
    driver: `${info.architecture} ${info.device} ${globalThis.navigator?.userAgent ?? ''}`.trim(),
    software: /swiftshader|llvmpipe|lavapipe|software|basic render/i.test(told) || info.isFallbackAdapter === true,
    max_buffer: device.limits.maxBufferSize,
    max_binding: device.limits.maxStorageBufferBindingSize,
    max_storage_bindings: device.limits.maxStorageBuffersPerShaderStage,
    max_invocations: device.limits.maxComputeInvocationsPerWorkgroup,
    max_workgroup_memory: device.limits.maxComputeWorkgroupStorageSize,
    max_groups: device.limits.maxComputeWorkgroupsPerDimension,
    storage_alignment: device.limits.minStorageBufferOffsetAlignment,
    uniform_alignment: device.limits.minUniformBufferOffsetAlignment,
    f16: device.features.has('shader-f16'),
    subgroups: device.features.has('subgroups' as GPUFeatureName),
    timestamps: device.features.has('timestamp-query'),
    subgroup_matrix: device.features.has(subgroupMatrix),
    integer_dots: integerDots,
  };
}

async function openDevice(gpu: GPU, wanted: Wanted): Promise<{ adapter: GPUAdapter; device: GPUDevice }> {
  const adapter = await gpu.requestAdapter({ powerPreference: 'high-performance' });
  if (adapter === null) {
    throw new BezelError('not-found', 'No GPU that speaks WebGPU was found. Update the browser or the graphics driver.');
  }
  // Where no driver works, Dawn offers a backend that does nothing and reports success.
  if (/null backend/i.test(`${adapter.info.device} ${adapter.info.description}`)) {
    throw new BezelError('not-found', 'No GPU driver works here: install one for Vulkan, or name one in VK_ICD_FILENAMES.');
  }
  const least = (limit: number, most: number): number => (most > 0 ? Math.min(limit, most) : limit);
  const { limits } = adapter;
  const requiredLimits: Record<string, number> = {
    maxBufferSize: limits.maxBufferSize,
    maxStorageBufferBindingSize: least(limits.maxStorageBufferBindingSize, wanted.max_binding),
    maxStorageBuffersPerShaderStage: least(limits.maxStorageBuffersPerShaderStage, wanted.max_storage_bindings),
    maxComputeInvocationsPerWorkgroup: least(limits.maxComputeInvocationsPerWorkgroup, wanted.max_invocations),
    maxComputeWorkgroupSizeX: least(limits.maxComputeWorkgroupSizeX, wanted.max_invocations),
    maxComputeWorkgroupStorageSize: limits.maxComputeWorkgroupStorageSize,
    maxComputeWorkgroupsPerDimension: limits.maxComputeWorkgroupsPerDimension,
    minStorageBufferOffsetAlignment: limits.minStorageBufferOffsetAlignment,
    minUniformBufferOffsetAlignment: limits.minUniformBufferOffsetAlignment,
  };
  const features: [GPUFeatureName, boolean][] = [
    ['shader-f16', wanted.f16],
    ['subgroups' as GPUFeatureName, wanted.subgroups],
    ['timestamp-query', wanted.timestamps],
    [subgroupMatrix, wanted.subgroup_matrix && wanted.f16 && wanted.subgroups],
  ];
  const requiredFeatures = features.filter(([name, want]) => want && adapter.features.has(name)).map(([name]) => name);
  return { adapter, device: await adapter.requestDevice({ requiredLimits, requiredFeatures }) };
}

/** What replaying programs costs this thread. */
export interface ReplayTime {
  runs: number;
  milliseconds: number;
  /** Of them in `submit`: where WebGPU runs in this process, the driver's part. */
  submitting: number;
}

/** How a host waits for its GPU. */
export type Waiting = <T>(done: Promise<T>) => Promise<T>;

/** The imports of the module `gpu`. */
export function gpuImports(heap: Heap, gpu: GPU | undefined, waiting: Waiting, replay: ReplayTime): WebAssembly.ModuleImports {
  const devices = new Map<number, OpenDevice>();
  let next = 0;
  const of = (id: number): OpenDevice => devices.get(id)!;
  const timed = (device: OpenDevice, run: () => number): number => {
    const [begin, submitting] = [performance.now(), device.submitting];
    const answer = run();
    replay.runs++;
    replay.milliseconds += performance.now() - begin;
    replay.submitting += device.submitting - submitting;
    return answer;
  };
  return {
    open(options: number, length: number, call: number): number {
      if (gpu === undefined) {
        return heap.failure('not-found', 'This browser has no WebGPU. A recent Chrome, Edge, Safari or Firefox has it.');
      }
      const wanted = JSON.parse(heap.text(options, length)) as Wanted;
      const opened = openDevice(gpu, wanted).then(({ adapter, device }) => {
        const dots = wanted.integer_dots && gpu.wgslLanguageFeatures?.has('packed_4x8_integer_dot_product') === true;
        heap.setMessage(JSON.stringify(describe(adapter.info, device, dots)));
        devices.set(++next, new OpenDevice(device, heap, waiting));
        return next;
      });
      return heap.answer(call, opened, 'unsupported');
    },
    close(id: number): void {
      of(id).close();
      devices.delete(id);
    },
    lose: (id: number): void => of(id).device.destroy(),
    make_buffer: (id: number, bytes: number, label: number, length: number): number =>
      of(id).makeBuffer(bytes, heap.text(label, length)),
    destroy_buffer(id: number, buffer: number): void {
      of(id).buffers.get(buffer)!.destroy();
      of(id).buffers.delete(buffer);
    },
    write: (id: number, buffer: number, offset: number, at: number, length: number): void =>
      of(id).device.queue.writeBuffer(of(id).buffers.get(buffer)!, offset, heap.bytes(at, length)),
    start_read(id: number, program: number, buffer: number, offset: number, length: number): number {
      const start = (): number => of(id).startRead(program, buffer, offset, length);
      return program === 0 ? start() : timed(of(id), start);
    },
    finish_read: (id: number, reading: number, at: number, call: number): number =>
      heap.answer(call, of(id).finishRead(reading, at), 'io'),
    drop_read: (id: number, reading: number): void => of(id).dropRead(reading),
    pipeline: (id: number, code: number, length: number, label: number, labelLength: number): number =>
      of(id).pipeline(heap.text(code, length), heap.text(label, labelLength)),
    make_program: (id: number, words: number, count: number): number => of(id).makeProgram(heap.words(words, count)),
    destroy_program: (id: number, program: number): void => of(id).destroyProgram(program),
    run: (id: number, program: number): number => timed(of(id), () => of(id).run(program)),
    profile: (id: number, program: number, out: number, call: number): number =>
      heap.answer(call, of(id).profile(program, out), 'io'),
    settle: (id: number, call: number): number => heap.answer(call, of(id).settle(), 'io'),
  };
}
