// Compares tensor map descriptors with those of a real driver, bit by bit; prints JSON.
//
// Needs libcuda.so.1 and a GPU of compute capability 9.0 or newer: `tensor_map_bytes > bytes.json`.
// Exit status 0: all equal, 1: some differ, 2: there is nothing to compare with.
#include "base/format.h"
#include "sim/tensor_map.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using kernwright::format;
using TensorMap = kernwright::TensorMapParameters;

struct alignas(64) Descriptor {
  std::uint8_t bytes[kernwright::kTensorMapBytes] = {};
};

/// cuTensorMapEncodeTiled with its enumerations as the integers that they are.
using EncodeTiled = int (*)(Descriptor*, int type, std::uint32_t rank, void* address,
                            const std::uint64_t* extents, const std::uint64_t* strides,
                            const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                            int swizzle, int promotion, int fill);

using EncodeIm2col = int (*)(Descriptor*, int type, std::uint32_t rank, void* address,
                             const std::uint64_t* extents, const std::uint64_t* strides,
                             const int* lower, const int* upper, std::uint32_t channels,
                             std::uint32_t pixels, const std::uint32_t* steps, int interleave,
                             int swizzle, int promotion, int fill);

struct Driver {
  EncodeTiled encode = nullptr;
  EncodeIm2col encode_im2col = nullptr;
  std::string problem;

  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) {
      problem = "libcuda.so.1 cannot be opened";
      return;
    }
    const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
    const int started = init == nullptr ? -1 : init(0);
    const auto retain =
        reinterpret_cast<int (*)(void**, int)>(dlsym(library, "cuDevicePrimaryCtxRetain"));
    const auto select = reinterpret_cast<int (*)(void*)>(dlsym(library, "cuCtxSetCurrent"));
    void* context = nullptr;  // the encoder asks for a current one
    if (retain == nullptr || select == nullptr || retain(&context, 0) != 0 ||
        select(context) != 0) {
      problem = "there is no context";
      return;
    }
    encode = reinterpret_cast<EncodeTiled>(dlsym(library, "cuTensorMapEncodeTiled"));
    encode_im2col = reinterpret_cast<EncodeIm2col>(dlsym(library, "cuTensorMapEncodeIm2col"));
    if (started != 0) problem = format("cuInit returned {}", started);
    if (encode == nullptr || encode_im2col == nullptr)
      problem = "the driver has no cuTensorMapEncodeTiled or no cuTensorMapEncodeIm2col";
  }

  int make(Descriptor& to, const TensorMap& map) const {
    const auto rank = static_cast<std::uint32_t>(map.rank);
    void* const address = reinterpret_cast<void*>(map.address);
    if (map.im2col)
      return encode_im2col(&to, map.type, rank, address, map.extent.data(), map.stride.data() + 1,
                           map.lower.data(), map.upper.data(), map.box[0], map.pixels,
                           map.step.data(), map.interleave, map.swizzle, map.l2_promotion,
                           map.fills_nan ? 1 : 0);
    return encode(&to, map.type, rank, address, map.extent.data(), map.stride.data() + 1,
                  map.box.data(), map.step.data(), map.interleave, map.swizzle, map.l2_promotion,
                  map.fills_nan ? 1 : 0);
  }
};

TensorMap plain() {
  TensorMap map;
  map.address = 0x7f0000010000;
  map.rank = 2;
  map.type = 6;
  map.extent = {1024, 512};
  map.stride = {0, 2048};
  map.box = {64, 32};
  map.step = {1, 1};
  return map;
}

/// One parameter at a time, then everything at random.
std::vector<TensorMap> parameter_sets() {
  std::vector<TensorMap> sets{plain()};
  const auto vary = [&](auto change) {
    sets.push_back(plain());
    change(sets.back());
  };
  for (int type = 0; type < 13; ++type)
    vary([&](TensorMap& m) { m.type = type, m.box[0] = 16, m.stride[1] = 8192; });
  for (int swizzle = 1; swizzle < 4; ++swizzle)
    vary([&](TensorMap& m) { m.swizzle = swizzle, m.box[0] = 8u << swizzle; });
  for (int promotion = 1; promotion < 4; ++promotion)
    vary([&](TensorMap& m) { m.l2_promotion = promotion; });
  vary([](TensorMap& m) { m.fills_nan = true; });
  for (int rank = 1; rank <= 5; ++rank)
    vary([&](TensorMap& m) {
      m.rank = rank;
      for (std::size_t d = 2; d < static_cast<std::size_t>(rank); ++d) {
        m.extent[d] = 3 + d;
        m.stride[d] = m.stride[d - 1] * m.extent[d - 1];
        m.box[d] = static_cast<std::uint32_t>(d);
        m.step[d] = 1;
      }
    });
  for (int interleave = 1; interleave < 3; ++interleave)
    vary([&](TensorMap& m) {
      m.interleave = interleave, m.rank = 3, m.swizzle = interleave == 2 ? 1 : 0;
      m.extent[2] = 4, m.stride[2] = 2048 * 512, m.box[2] = 2, m.step[2] = 1;
    });
  for (std::uint32_t step = 2; step <= 8; ++step) vary([&](TensorMap& m) { m.step[1] = step; });
  for (int bit = 4; bit < 47; bit += 3)
    vary([&](TensorMap& m) { m.address = std::uint64_t{1} << bit; });
  for (int bit = 4; bit < 40; bit += 3)
    vary([&](TensorMap& m) { m.stride[1] = std::uint64_t{1} << bit; });
  for (int bit = 0; bit <= 32; bit += 4)
    vary([&](TensorMap& m) { m.extent[1] = std::uint64_t{1} << bit; });
  const auto vary_columns = [&](int rank, auto change) {
    vary([&](TensorMap& m) {
      m.im2col = true;
      m.rank = rank;
      m.extent = {64, 100, 90, 80, 70};
      m.stride = {0, 128, 12800, 1152000, 92160000};
      m.step = {1, 1, 1, 1, 1};
      m.box = {64};
      m.pixels = 128;
      change(m);
    });
  };
  for (int rank = 3; rank <= 5; ++rank) {
    const int limit = kernwright::tensor_corner_limit(rank);
    vary_columns(rank, [](TensorMap&) {});
    for (std::size_t d = 0; d + 2 < static_cast<std::size_t>(rank); ++d)
      for (const int corner : {-limit, -1, 1, 5})
        vary_columns(rank, [&](TensorMap& m) { m.lower[d] = corner; });
    for (std::size_t d = 0; d + 2 < static_cast<std::size_t>(rank); ++d)
      for (const int corner : {-5, -1, 1, limit - 1})
        vary_columns(rank, [&](TensorMap& m) { m.upper[d] = corner; });
    for (const std::uint32_t pixels : {1u, 2u, 255u, 256u, 512u, 1024u})
      vary_columns(rank, [&](TensorMap& m) { m.pixels = pixels; });
    for (const std::uint32_t channels : {8u, 16u, 72u, 256u})
      vary_columns(rank, [&](TensorMap& m) { m.box[0] = channels; });
    vary_columns(rank, [](TensorMap& m) { m.step[1] = 2; });
    vary_columns(rank, [](TensorMap& m) { m.swizzle = 3; });
  }
  // What the rules leave open: a step of dimension 0, and channels that are no multiple of 16
  // bytes.
  vary([](TensorMap& m) { m.step[0] = 2; });
  vary_columns(4, [](TensorMap& m) { m.step[0] = 2; });
  vary_columns(4, [](TensorMap& m) { m.box[0] = 3; });
  std::mt19937_64 random(1);
  for (const std::size_t enough = sets.size() + 130; sets.size() < enough;) {
    TensorMap m;
    m.address = random() % (std::uint64_t{1} << 47) & ~std::uint64_t{31};
    m.rank = 1 + static_cast<int>(random() % 5);
    m.type = static_cast<int>(random() % 13);
    m.swizzle = static_cast<int>(random() % 4);
    m.l2_promotion = static_cast<int>(random() % 4);
    m.fills_nan = kernwright::is_floating_tensor(m.type) && random() % 2 != 0;
    std::uint64_t stride = 16 * (1 + random() % 4096);
    for (std::size_t d = 0; d < static_cast<std::size_t>(m.rank); ++d) {
      m.extent[d] = 1 + random() % 4000;
      m.box[d] = 1 + static_cast<std::uint32_t>(random() % 16);
      m.step[d] = d == 0 ? 1 : 1 + static_cast<std::uint32_t>(random() % 8);
      if (d > 0) m.stride[d] = stride;
      stride *= 1 + random() % 32;
    }
    m.box[0] = 16 / kernwright::tensor_element_bytes(m.type);
    if (kernwright::check_tensor_map(m).empty()) sets.push_back(m);
  }
  return sets;
}

std::string list(const auto& values, int count) {
  std::string text = "[";
  for (int i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(values[static_cast<std::size_t>(i)]);
  return text + "]";
}

std::string hex(const std::uint8_t* bytes) {
  std::string text;
  for (std::size_t i = 0; i < kernwright::kTensorMapBytes; ++i) text += format("{:02x}", bytes[i]);
  return text;
}

std::string describe(const TensorMap& m) {
  return format(
      "\"type\": {}, \"rank\": {}, \"address\": {}, \"extent\": {}, \"stride\": {}, \"box\": {}, "
      "\"step\": {}, \"interleave\": {}, \"swizzle\": {}, \"l2_promotion\": {}, \"fills_nan\": {}, "
      "\"im2col\": {}, \"lower\": {}, \"upper\": {}, \"pixels\": {}",
      m.type, m.rank, m.address, list(m.extent, m.rank), list(m.stride, m.rank),
      list(m.box, m.rank), list(m.step, m.rank), m.interleave, m.swizzle, m.l2_promotion,
      m.fills_nan ? 1 : 0, m.im2col ? 1 : 0, list(m.lower, 3), list(m.upper, 3), m.pixels);
}

}  // namespace

int main() {
  const Driver driver;
  if (!driver.problem.empty()) {
    std::printf("{\"problem\": \"%s\"}\n", driver.problem.c_str());
    return 2;
  }
  int equal = 0, refused = 0, different = 0;
  std::map<int, int> bits;  // how often each bit of the descriptor differs
  std::printf("{\"sets\": [\n");
  bool first = true;
  for (const TensorMap& map : parameter_sets()) {
    Descriptor theirs;
    const int code = driver.make(theirs, map);
    const auto encoded = kernwright::sim::encode_tensor_map(map);
    Descriptor ours;
    std::memcpy(ours.bytes, encoded.data(), sizeof ours.bytes);
    std::string differs;
    for (int bit = 0; code == 0 && bit < 1024; ++bit) {
      if (((ours.bytes[bit / 8] ^ theirs.bytes[bit / 8]) >> bit % 8 & 1) == 0) continue;
      ++bits[bit];
      differs += (differs.empty() ? "" : ", ") + std::to_string(bit);
    }
    refused += code != 0 ? 1 : 0;
    (differs.empty() ? equal : different) += code == 0 ? 1 : 0;
    std::printf("%s{%s, \"code\": %d, \"ours\": \"%s\", \"driver\": \"%s\", \"bits\": [%s]}",
                first ? "" : ",\n", describe(map).c_str(), code, hex(ours.bytes).c_str(),
                hex(theirs.bytes).c_str(), differs.c_str());
    first = false;
  }
  std::printf("\n],\n\"equal\": %d, \"different\": %d, \"refused\": %d, \"bits\": {", equal,
              different, refused);
  first = true;
  for (const auto& [bit, count] : bits) {
    std::printf("%s\"%d\": %d", first ? "" : ", ", bit, count);
    first = false;
  }
  std::printf("}}\n");
  return different == 0 && refused == 0 ? 0 : 1;
}
