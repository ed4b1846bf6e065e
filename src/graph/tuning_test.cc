#include "graph/tuning.h"

#include "support.h"

namespace bezel {
namespace {

DeviceInfo gpu() {
  DeviceInfo info;
  info.name = "a GPU \xff";  // drivers name themselves as they like
  info.vendor = "some";
  info.backend = "Vulkan";
  info.driver = "1.2.3";
  info.max_invocations = 1024;
  info.subgroups = true;
  return info;
}

const ProductShape kShape{ProductKind::kGated, DType::kQ4_K, 12288, 1536};
const ProductShape kOther{ProductKind::kOne, DType::kQ6_K, 1536, 6144};

Tuning some_tuning() {
  const auto variants = vector_variants(gpu());
  Tuning tuning;
  tuning.set(kShape, variants[1]);
  tuning.set(kOther, variants.back());
  return tuning;
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Tuning, SurvivesItsText) {
  const Tuning back = Tuning::parse(some_tuning().text(gpu()), gpu());
  ASSERT_EQ(back.products().size(), 2u);
  const auto variants = vector_variants(gpu());
  const KernelVariant* found = back.find(kShape);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->vector.threads, variants[1].vector.threads);
  EXPECT_EQ(found->vector.lanes, variants[1].vector.lanes);
  EXPECT_EQ(found->vector.rows, variants[1].vector.rows);
  EXPECT_EQ(back.products().at(kOther).name, variants.back().name);
  EXPECT_EQ(back.find({ProductKind::kOne, DType::kQ4_K, 12288, 1536}), nullptr);
}

TEST(Tuning, OfManyTokensSurvivesItsText) {
  const ProductShape shape{ProductKind::kTiles, DType::kQ4_K, 12288, 1536, 1024};
  DeviceInfo info = gpu();
  info.max_workgroup_memory = 48 << 10;
  const auto variants = tile_variants(info);
  ASSERT_GT(variants.size(), 3u);
  Tuning tuning;
  tuning.set(shape, variants.back());
  const std::string text = tuning.text(info);
  const Tuning back = Tuning::parse(text, info);
  ASSERT_NE(back.find(shape), nullptr);
  EXPECT_EQ(back.find(shape)->tiles.rows, variants.back().tiles.rows);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"1024", "0"},
                                                        {"1024", "-1"},
                                                        {"\"mat_mul\"", "\"mat_vec\""},
                                                        {variants.back().name, "256 threads"}})
    EXPECT_TRUE(Tuning::parse(with(text, from, to), info).products().empty()) << from << " -> " << to;
  info.max_workgroup_memory = 1 << 10;  // too little for any
  EXPECT_TRUE(Tuning::parse(text, info).products().empty());
}

const RelayShape kSmall{35, 1536, 3'110'000'000}, kLarge{60, 5376, 18'680'000'000};

TEST(Tuning, OfRelaysSurvivesItsText) {
  Tuning tuning = some_tuning();
  tuning.set_relays(kSmall, 256);
  tuning.set_relays(kLarge, 0);
  const Tuning back = Tuning::parse(tuning.text(gpu()), gpu());
  EXPECT_EQ(back.products().size(), 2u);
  EXPECT_EQ(back.relays(kSmall), 256u);
  EXPECT_EQ(back.relays(kLarge), 0u);
  for (const RelayShape& other :
       {RelayShape{34, 1536, kSmall.bytes}, {35, 1537, kSmall.bytes}, {35, 1536, 7}})
    EXPECT_EQ(back.relays(other), std::nullopt);
  DeviceInfo small = gpu();  // has no workgroups of so many
  small.max_invocations = 128;
  EXPECT_EQ(Tuning::parse(tuning.text(gpu()), small).relays(kSmall), std::nullopt);
  EXPECT_EQ(Tuning::parse(tuning.text(gpu()), small).relays(kLarge), 0u);
  small.driver = "1.2.4";
  EXPECT_EQ(Tuning::parse(tuning.text(gpu()), small).relays(kLarge), std::nullopt);
}

TEST(Tuning, OfRelaysMayBeBroken) {
  Tuning tuning;
  tuning.set_relays(kSmall, 512);
  const std::string text = tuning.text(gpu());
  // Without a list of products, which has its own faults.
  EXPECT_EQ(Tuning::parse(with(text, "\"products\": []", "\"products\": 7"), gpu()).relays(kSmall), 512u);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"relays\": [", "\"relay\": ["},
                                                        {"\"relays\": [", "\"relays\": {\"a\": 1}, \"x\": ["},
                                                        {"512 threads", "511 threads"},
                                                        {"512 threads", "0 threads"},
                                                        {"\"512 threads\"", "512"},
                                                        {"\"512 threads\"", "null"},
                                                        {"\"512 threads\"", "{\"threads\": 512}"},
                                                        {"35", "-35"},
                                                        {"35", "4294967331"},
                                                        {"35", "\"35\""},
                                                        {"1536", "1536.0"},
                                                        {"3110000000", "[]"},
                                                        {"3110000000", "31100000000000000000000"}})
    EXPECT_EQ(Tuning::parse(with(text, from, to), gpu()).relays(kSmall), std::nullopt)
        << from << " -> " << to;
  for (const RelayShape& nothing : {RelayShape{0, 1536, 9}, {35, 0, 9}, {35, 1536, 0}}) {
    Tuning zero;
    zero.set_relays(nothing, 512);
    EXPECT_EQ(Tuning::parse(zero.text(gpu()), gpu()).relays(nothing), std::nullopt);
  }
  const std::string among = with(text, "\"relays\": [", "\"relays\": [null, 7, [], \"x\", {},");
  EXPECT_EQ(Tuning::parse(among, gpu()).relays(kSmall), 512u);
}

TEST(Tuning, TakesOverWhatIsNews) {
  const auto variants = vector_variants(gpu());
  Tuning tuning = some_tuning(), news;
  tuning.set_relays(kSmall, 512);
  news.set(kOther, variants[0]);
  news.set_relays(kSmall, 0);
  news.set_relays(kLarge, 256);
  tuning.add(news);
  EXPECT_EQ(tuning.find(kShape)->name, variants[1].name);
  EXPECT_EQ(tuning.find(kOther)->name, variants[0].name);
  EXPECT_EQ(tuning.relays(kSmall), 0u);
  EXPECT_EQ(tuning.relays(kLarge), 256u);
}

TEST(Tuning, OfAnotherDeviceIsNotThere) {
  const std::string text = some_tuning().text(gpu());
  const auto known_to = [&](auto change) {
    DeviceInfo other = gpu();
    change(other);
    return Tuning::parse(text, other).products().size();
  };
  EXPECT_EQ(known_to([](DeviceInfo&) {}), 2u);
  EXPECT_EQ(known_to([](DeviceInfo& info) { info.name = "another"; }), 0u);
  EXPECT_EQ(known_to([](DeviceInfo& info) { info.vendor = "another"; }), 0u);
  EXPECT_EQ(known_to([](DeviceInfo& info) { info.backend = "Metal"; }), 0u);
  EXPECT_EQ(known_to([](DeviceInfo& info) { info.driver = "1.2.4"; }), 0u);
  // The same one with fewer of its features: what needs them is left out.
  EXPECT_EQ(known_to([](DeviceInfo& info) { info.subgroups = false; }), 1u);
  EXPECT_EQ(known_to([](DeviceInfo& info) { info.max_invocations = 4; }), 0u);
  EXPECT_EQ(Tuning::parse(with(text, "kernels ", "kernels 0"), gpu()).products().size(), 0u);
}

TEST(Tuning, BrokenTextIsNotThere) {
  const std::string text = some_tuning().text(gpu());
  for (const std::string& broken :
       {std::string(), std::string("null"), std::string("[]"), std::string("{}"), std::string("{\"key\": 7}"),
        std::string("\xff\xfe\0{", 4), std::string(100'000, '['), std::string(2 << 20, ' '),
        text.substr(0, text.size() / 2), with(text, "\"products\": [", "\"products\": {\"a\": 1}, \"x\": ["),
        with(text, "\"products\"", "\"product\"")})
    EXPECT_TRUE(Tuning::parse(broken, gpu()).products().empty()) << broken.substr(0, 100);
}

TEST(Tuning, BrokenEntriesAreNotThere) {
  const std::string text = some_tuning().text(gpu());
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"12288", "-12288"},
           {"12288", "0"},
           {"12288", "4294967296"},
           {"12288", "1e3"},
           {"12288", "\"12288\""},
           {"\"Q4_K\"", "\"Q4_Z\""},
           {"\"Q4_K\"", "4"},
           {"\"gated_mat_vec\"", "\"mat_mul\""},
           {"128 threads, 16 lanes", "100000 threads, 16 lanes"},
           {"\"128 threads, 16 lanes, 2 rows\"", "null"},
           {"\"128 threads, 16 lanes, 2 rows\"", "{\"threads\": 3}"}}) {
    const Tuning found = Tuning::parse(with(text, from, to), gpu());
    EXPECT_EQ(found.products().size(), 1u) << from << " -> " << to;
    EXPECT_EQ(found.find(kShape), nullptr);
  }
  EXPECT_EQ(Tuning::parse(with(text, "\"products\": [", "\"products\": [null, 7, [], \"x\","), gpu())
                .products()
                .size(),
            2u);
}

TEST(Tuning, VariantsHaveNamesOfTheirOwn) {
  for (const bool software : {false, true}) {
    DeviceInfo info = gpu();
    info.software = software;
    auto variants = vector_variants(info);
    ASSERT_GT(variants.size(), 1u);
    std::ranges::sort(variants, {}, &KernelVariant::name);
    EXPECT_EQ(std::ranges::adjacent_find(variants, {}, &KernelVariant::name), variants.end());
    info.max_workgroup_memory = 48 << 10, info.subgroup_matrix = true;
    auto tiles = tile_variants(info);
    ASSERT_GT(tiles.size(), 1u);
    std::ranges::sort(tiles, {}, &KernelVariant::name);
    EXPECT_EQ(std::ranges::adjacent_find(tiles, {}, &KernelVariant::name), tiles.end());
  }
}

}  // namespace
}  // namespace bezel
