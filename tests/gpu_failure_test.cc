// A GPU that goes away, that is full, or that refuses: each is an error with a name, and none is the end.
#ifndef __wasm__
#include <array>

#include "base/format_text.h"
#include "gpu_fixture.h"
#include "models.h"

namespace bezel {
namespace {

constexpr f64 kSame = 1e-4;

std::vector<u32> ids(u32 count) {
  std::vector<u32> ids;
  for (u32 i = 0; i < count; ++i) ids.push_back((i * 31 + 2) % 48);
  return ids;
}

std::unique_ptr<Device> open_device(u64 max_memory = 0) {
  DeviceOptions options = test_device_options();
  options.max_memory = max_memory;
  auto device = run_now(Device::open(options));
  EXPECT_TRUE(device) << device.error().message;
  return device ? std::move(*device) : nullptr;
}

LoadOptions on(Device& device, PerLayerTable table = PerLayerTable::kAuto) {
  LoadOptions options;
  options.device = &device;
  options.gpu.batch = 16;
  options.per_layer_table = table;
  return options;
}

template <class T>
void expect_lost(const Result<T>& result) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kDeviceLost) << result.error().message;
  EXPECT_NE(result.error().message.find("Open it again and reload the model."), std::string::npos)
      << result.error().message;
}

TEST(GpuLost, IsSurvived) {
  const auto prompt = ids(30);
  const std::vector<u32> next{7};
  std::vector<f32> expected;
  std::vector<u32> tokens;
  std::vector<std::byte> file;
  {
    const auto device = open_device();
    const auto loaded = load_model(data_path("tiny-e2b.gguf"), on(*device));
    ASSERT_TRUE(loaded.backend);
    auto session = Session::create(*loaded.backend, 64);
    ASSERT_OK(session);
    ASSERT_OK(run_now(session->feed(prompt)));
    ASSERT_OK(run_now(session->save([&](Bytes bytes) {
      file.insert(file.end(), bytes.begin(), bytes.end());
      return Status{};
    })));
    tokens = session->tokens();
    ASSERT_OK(run_now(session->feed(next)));
    expected.assign(session->logits().begin(), session->logits().end());
    ASSERT_OK(run_now(session->rewind(30)));

    device->lose();
    for (int attempt = 0; attempt < 2; ++attempt) {
      expect_lost(run_now(session->feed(next)));
      EXPECT_EQ(session->tokens(), tokens);  // still there to be fed elsewhere
    }
    expect_lost(run_now(session->feed(ids(16))));  // a plan that was not built yet
    expect_lost(run_now(session->save([](Bytes) { return Status{}; })));
    expect_lost(Session::create(*loaded.backend, 64));
    expect_lost(run_now(load_backend(*loaded.file, on(*device))));
    expect_lost(device->pipeline("@compute @workgroup_size(1) fn main() {}", "empty"));
    device->lose();  // once more does no harm
  }
  const auto device = open_device();
  const auto loaded = load_model(data_path("tiny-e2b.gguf"), on(*device));
  ASSERT_TRUE(loaded.backend);
  auto fed = Session::create(*loaded.backend, 64), restored = Session::create(*loaded.backend, 64);
  ASSERT_OK(fed);
  ASSERT_OK(restored);
  ASSERT_OK(run_now(fed->set_prompt({tokens})));
  ASSERT_OK(run_now(restored->restore(*memory_source(file))));
  for (Session* session : {&*fed, &*restored}) {
    ASSERT_OK(run_now(session->feed(next)));
    EXPECT_LE(difference(session->logits(), expected), kSame);
  }
}

TEST(GpuLost, WhileLoading) {
  const auto device = open_device();
  auto file = open_gguf(data_path("tiny-e2b.gguf"));
  ASSERT_OK(file);
  LoadOptions options = on(*device);
  options.progress = [&](u64 done, u64 total) {
    if (done > total / 2) device->lose();
    return true;
  };
  expect_lost(run_now(load_backend(*file, options)));
  EXPECT_EQ(device->allocated(), 0u);
}

TEST(GpuFull, TooLargeAContextLeavesNothingBehind) {
  const auto device = open_device(16 << 20);
  const auto loaded = load_model(data_path("tiny-e2b.gguf"), on(*device));
  ASSERT_TRUE(loaded.backend);
  const u64 before = device->allocated();
  const u32 buffers = device->counts().buffers;
  for (const u32 context : {200'000u, 4'000'000u, 4'000'000'000u}) {
    auto session = Session::create(*loaded.backend, context);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().kind, ErrorKind::kMemory);
    EXPECT_EQ(device->allocated(), before);
    EXPECT_EQ(device->counts().buffers, buffers);
  }
  auto session = Session::create(*loaded.backend, 64);
  ASSERT_OK(session);
  ASSERT_OK(run_now(session->feed(ids(30))));
}

TEST(GpuFull, WhereverLoadingEndsNothingStays) {
  auto file = open_gguf(data_path("tiny-e2b.gguf"));
  ASSERT_OK(file);
  const auto roomy = open_device();
  u64 needed = 0;
  u32 calls = 0;
  {
    LoadOptions options = on(*roomy, PerLayerTable::kDevice);
    options.progress = [&](u64, u64) { return ++calls > 0; };
    ASSERT_OK(run_now(load_backend(*file, options)));
    auto backend = run_now(load_backend(*file, options));
    ASSERT_OK(backend);
    needed = roomy->allocated();
  }
  EXPECT_EQ(roomy->allocated(), 0u);
  for (u32 stop = 1; stop < calls / 2; stop += 11) {
    LoadOptions options = on(*roomy);
    u32 left = stop;
    options.progress = [&](u64, u64) { return --left > 0; };
    auto backend = run_now(load_backend(*file, options));
    ASSERT_FALSE(backend);
    EXPECT_EQ(backend.error().kind, ErrorKind::kCancelled);
    EXPECT_EQ(roomy->allocated(), 0u);
    EXPECT_EQ(roomy->counts().buffers, 0u);
  }
  for (const u64 eighths : {1, 3, 5, 7}) {
    const auto device = open_device(needed * eighths / 8);
    auto backend = run_now(load_backend(*file, on(*device, PerLayerTable::kDevice)));
    ASSERT_FALSE(backend);
    EXPECT_EQ(backend.error().kind, ErrorKind::kMemory);
    EXPECT_EQ(device->allocated(), 0u);
  }
}

TEST(GpuFull, TheTableGivesWay) {
  const std::string path = data_path("tiny-e2b-Q4_K_M.gguf");
  const auto roomy = open_device();
  const auto held = load_model(path, on(*roomy, PerLayerTable::kDevice));
  ASSERT_TRUE(held.backend);
  const u64 table = held.file->tensor("per_layer_token_embd.weight")->bytes;
  const auto device = open_device(roomy->allocated() - table / 2);
  const auto loaded = load_model(path, on(*device));
  ASSERT_TRUE(loaded.backend);
  EXPECT_TRUE(loaded.backend->model().per_layer_rows_from_file);
  auto session = Session::create(*loaded.backend, 32), expected = Session::create(*held.backend, 32);
  ASSERT_OK(session);
  ASSERT_OK(expected);
  ASSERT_OK(run_now(session->feed(ids(20))));
  ASSERT_OK(run_now(expected->feed(ids(20))));
  EXPECT_LE(difference(session->logits(), expected->logits()), kSame);
}

// Blocks of 210 bytes and an odd number of rows make such tensors.
TEST(GpuBuffers, OfOddSizesCanBeBoundAndWritten) {
  auto buffer = test_device()->make_buffer(630, "odd");
  ASSERT_OK(buffer);
  EXPECT_EQ(buffer->view().bytes, 632u);
  const std::vector<std::byte> bytes(632, std::byte{7});
  test_device()->write(*buffer, 0, bytes);
  std::vector<std::byte> back(632);
  ASSERT_TRUE(run_now(test_device()->read(*buffer, 0, back)));
  EXPECT_EQ(back, bytes);
}

std::string kernel_that_writes(u32 number) {
  return format_text(
      "@group(0) @binding(0) var<uniform> p: vec4u;\n"
      "@group(0) @binding(1) var<storage, read_write> x: array<u32>;\n"
      "@compute @workgroup_size(1) fn main() {{ x[0] = p.x + {}u; }}",
      number);
}

TEST(GpuRefuses, AndNamesTheKernel) {
  const auto device = open_device();
  const char* const kBroken[] = {"fn main() { let x: u32 = 1.0; }", "this is no program",
                                 "@compute @workgroup_size(1) fn another_name() {}",
                                 "@compute @workgroup_size(100000) fn main() {}"};
  auto buffer = device->make_buffer(64, "x");
  ASSERT_OK(buffer);
  const auto dispatch_of = [&](const Result<u32>& pipeline) {
    return Dispatch{pipeline.value_or(0), std::vector<std::byte>(16), {buffer->view()}, {1, 1, 1}};
  };
  for (const char* wgsl : kBroken) {
    const auto pipeline = device->pipeline(wgsl, "mat_vec Q4_K");
    ASSERT_OK(pipeline);
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto program = device->make_program(std::array{dispatch_of(pipeline)});
      ASSERT_FALSE(program) << wgsl;
      EXPECT_EQ(program.error().kind, ErrorKind::kInvalid);
      EXPECT_TRUE(program.error().message.starts_with("Kernel mat_vec Q4_K: ")) << program.error().message;
    }
  }
  EXPECT_EQ(device->counts().pipelines, 0u);

  // One among others, with the compiler's words, and without harm to them.
  const auto first = device->pipeline(kernel_that_writes(1), "the first");
  const auto broken = device->pipeline("fn main() { let y: u32 = 2.5; }", "the second");
  const auto last = device->pipeline(kernel_that_writes(3), "the last");
  const auto mixed =
      device->make_program(std::array{dispatch_of(first), dispatch_of(broken), dispatch_of(last)});
  ASSERT_FALSE(mixed);
  EXPECT_TRUE(mixed.error().message.starts_with("Kernel the second: ")) << mixed.error().message;
  EXPECT_NE(mixed.error().message.find("u32"), std::string::npos) << mixed.error().message;
  const auto others = device->make_program(std::array{dispatch_of(first), dispatch_of(last)});
  ASSERT_OK(others);
  ASSERT_TRUE(device->run(*others));
  u32 found = 0;
  ASSERT_TRUE(run_now(device->read(*buffer, 0, std::as_writable_bytes(std::span(&found, 1)))));
  EXPECT_EQ(found, 3u);
  EXPECT_EQ(device->counts().compiled_at_once, 3u);

  // Bindings that the kernel does not have.
  const auto good = device->pipeline(kernel_that_writes(4), "just a kernel");
  ASSERT_OK(good);
  const u64 before = device->allocated();
  Dispatch dispatch{*good, std::vector<std::byte>(16), {buffer->view(), buffer->view()}, {1, 1, 1}};
  const auto program = device->make_program(std::array{dispatch});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().kind, ErrorKind::kInvalid);
  EXPECT_NE(program.error().message.find("just a kernel"), std::string::npos) << program.error().message;
  EXPECT_EQ(device->allocated(), before);
  EXPECT_EQ(device->counts().programs, 1u);
  dispatch.bindings.pop_back();
  const auto fixed = device->make_program(std::array{dispatch});
  ASSERT_OK(fixed);
  EXPECT_TRUE(device->run(*fixed));
}

}  // namespace
}  // namespace bezel
#endif
