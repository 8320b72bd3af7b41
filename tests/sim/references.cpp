// What the kernels of the corpus must compute. Where the kernel's result is exact in IEEE terms the
// reference repeats its operations; elsewhere it computes in double.
#include "sim/references.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace kernwright::sim {
namespace {

void saxpy(const KernelCase&, Buffers& b) {
  const auto a = value<float>(b[0]);
  const auto x = values<float>(b[1]);
  auto y = values<float>(b[2]);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::fma(a, x[i], y[i]);
  assign(b[2], y);
}

/// Both matrix products add in the order of k with fused multiply-adds.
void sgemm(const KernelCase&, Buffers& b) {
  const auto n = static_cast<std::size_t>(value<int>(b[3]));
  const auto x = values<float>(b[0]), y = values<float>(b[1]);
  std::vector<float> c(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum = std::fma(x[i * n + k], y[k * n + j], sum);
      c[i * n + j] = sum;
    }
  }
  assign(b[2], c);
}

void sum_all(const KernelCase&, Buffers& b) {
  const auto x = values<float>(b[0]);
  assign<float>(b[1], {static_cast<float>(std::accumulate(x.begin(), x.end(), 0.0))});
}

void sum_blocks(const KernelCase& c, Buffers& b) {
  const auto x = values<float>(b[0]);
  std::vector<float> sums(c.grid[0]);
  for (std::size_t i = 0; i < x.size(); ++i) sums[i / c.block[0]] += x[i];
  assign(b[1], sums);
}

void scan_shuffle(const KernelCase&, Buffers& b) {
  const auto x = values<int>(b[0]);
  auto out = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = x[i] + (i % 32 == 0 ? 0 : out[i - 1]);
  }
  assign(b[1], out);
  const auto wide = values<double>(b[2]);
  auto wide_out = wide;
  for (std::size_t i = 0; i < wide.size(); ++i) wide_out[i] = wide[i / 16 * 16 + 3];
  assign(b[2], wide_out);
  const auto pairs = values<std::int64_t>(b[3]);
  auto pairs_out = pairs;
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs_out[i] = pairs[i ^ 1];
  assign(b[3], pairs_out);
}

void softmax(const KernelCase& c, Buffers& b) {
  const auto n = static_cast<std::size_t>(value<int>(b[2]));
  const auto x = values<float>(b[0]);
  std::vector<float> y(x.size());
  for (std::size_t row = 0; row < c.grid[0]; ++row) {
    const float* in = x.data() + row * n;
    const double largest = *std::max_element(in, in + n);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::exp(in[i] - largest);
    for (std::size_t i = 0; i < n; ++i) {
      y[row * n + i] = static_cast<float>(std::exp(in[i] - largest) / sum);
    }
  }
  assign(b[1], y);
}

void rmsnorm(const KernelCase& c, Buffers& b) {
  const auto n = static_cast<std::size_t>(value<int>(b[3]));
  const double eps = value<float>(b[4]);
  const auto x = values<float>(b[0]), w = values<float>(b[1]);
  std::vector<float> y(x.size());
  for (std::size_t row = 0; row < c.grid[0]; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += double{x[row * n + i]} * x[row * n + i];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(n) + eps);
    for (std::size_t i = 0; i < n; ++i) {
      y[row * n + i] = static_cast<float>(x[row * n + i] * scale * w[i]);
    }
  }
  assign(b[2], y);
}

void rope(const KernelCase&, Buffers& b) {
  auto x = values<float>(b[0]);
  const int pairs = value<int>(b[1]), position = value<int>(b[2]);
  for (int i = 0; i < pairs; ++i) {
    const double angle = position * std::pow(10000.0, -2.0 * i / (2 * pairs));
    const auto at = static_cast<std::size_t>(2 * i);
    const double first = x[at], second = x[at + 1];
    x[at] = static_cast<float>(first * std::cos(angle) - second * std::sin(angle));
    x[at + 1] = static_cast<float>(first * std::sin(angle) + second * std::cos(angle));
  }
  assign(b[0], x);
}

template <typename T, typename Change>
void each_vector(const std::vector<std::byte>& from, std::vector<std::byte>& to, std::size_t lanes,
                 Change&& change) {
  auto all = values<T>(from);
  for (std::size_t i = 0; i < all.size(); i += lanes) change(all.data() + i);
  assign(to, all);
}

void vector_loads(const KernelCase&, Buffers& b) {
  each_vector<float>(b[0], b[5], 4, [](float* v) { v[0] += v[3]; });
  each_vector<int>(b[1], b[6], 2, [](int* v) { std::swap(v[0], v[1]); });
  each_vector<std::uint8_t>(b[2], b[7], 4,
                            [](std::uint8_t* v) { v[0] = static_cast<std::uint8_t>(v[0] ^ v[3]); });
  each_vector<double>(b[3], b[8], 2, [](double* v) { std::swap(v[0], v[1]); });
  each_vector<std::int16_t>(b[4], b[9], 4, [](std::int16_t* v) {
    std::swap(v[0], v[3]);
    std::swap(v[1], v[2]);
  });
}

/// One dot product of five elements for each thread, accumulated in the element's type.
template <typename T>
void dots(const KernelCase& c, Buffers& b) {
  const auto x = values<T>(b[0]), y = values<T>(b[1]);
  std::vector<T> out(c.block[0]);
  for (std::size_t i = 0; i < out.size(); ++i) {
    T sum = 0;
    for (std::size_t k = 5 * i; k < 5 * i + 5; ++k) {
      if constexpr (std::is_floating_point_v<T>) {
        sum = std::fma(x[k], y[k], sum);
      } else {
        sum = static_cast<T>(sum + x[k] * y[k]);
      }
    }
    out[i] = sum;
  }
  assign(b[2], out);
}

void function_pointers(const KernelCase&, Buffers& b) {
  const auto which = values<int>(b[0]);
  auto x = values<float>(b[1]);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (which[i] == 0) x[i] += 2.0f;
    if (which[i] == 1) x[i] -= 2.0f;
    if (which[i] == 2) x[i] *= 2.0f;
  }
  assign(b[1], x);
}

void virtual_calls(const KernelCase&, Buffers& b) {
  std::vector<float> out(values<float>(b[0]).size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto n = static_cast<float>(i);
    out[i] = i % 2 == 1 ? 3.14159265f * n * n : n * 2.0f + 4.0f;
  }
  assign(b[0], out);
}

void histogram(const KernelCase&, Buffers& b) {
  auto bins = values<std::uint32_t>(b[1]);
  for (const std::uint8_t v : values<std::uint8_t>(b[0])) ++bins[v];
  assign(b[1], bins);
}

void spin_lock(const KernelCase& c, Buffers& b) {
  assign<int>(b[1], {static_cast<int>(c.grid[0] * c.block[0])});
}

void atomic_totals(const KernelCase& c, Buffers& b) {
  auto i = values<std::uint32_t>(b[0]), u = values<std::uint32_t>(b[1]);
  auto l = values<std::uint64_t>(b[2]);
  auto f = values<float>(b[3]);
  auto d = values<double>(b[4]);
  const auto least = [](std::uint32_t& to, std::int32_t x) {
    to = static_cast<std::uint32_t>(std::min(static_cast<std::int32_t>(to), x));
  };
  const auto most = [](std::uint32_t& to, std::int32_t x) {
    to = static_cast<std::uint32_t>(std::max(static_cast<std::int32_t>(to), x));
  };
  for (std::uint32_t block = 0; block < c.grid[0]; ++block) {
    std::uint32_t* const si = &i[8 + block * 4];
    std::uint64_t* const sl = &l[6 + block * 2];
    si[0] = si[2] = si[3] = 0;
    si[1] = 1u << 30;
    sl[0] = sl[1] = 0;
    f[1 + block] = 0;
    for (std::uint32_t thread = 0; thread < c.block[0]; ++thread) {
      const std::uint32_t t = block * c.block[0] + thread;
      const auto s = static_cast<std::int32_t>(t);
      const std::uint64_t w = t;
      i[0] += t;
      i[1] -= 2 * t;
      least(i[2], 7 - s);
      most(i[3], s * 3);
      i[4] &= ~(1u << (t & 15));
      i[5] |= 1u << (t % 20);
      i[6] ^= t * 77;
      i[7] += 5;
      u[0] = u[0] >= 10 ? 0 : u[0] + 1;
      u[1] = u[1] == 0 || u[1] > 12 ? 12 : u[1] - 1;
      u[2] = std::min(u[2], 5u + t);
      u[3] = std::max(u[3], 1u << (t & 31));
      l[0] += std::uint64_t{1} << 33;
      l[1] = std::min(l[1], 1000 + w);
      l[2] = std::max(l[2], w << 34);
      l[3] &= ~(std::uint64_t{1} << (t & 63));
      l[4] |= std::uint64_t{1} << (t % 60);
      l[5] ^= w << 20;
      f[0] += 0.5f * static_cast<float>(t);
      d[0] += 0.25 * t;
      si[0] += t;
      least(si[1], -s);
      most(si[2], s);
      si[3] |= t;
      sl[0] += 3;
      sl[1] = std::max(sl[1], w << 40);
      f[1 + block] += 2.0f;
    }
  }
  assign(b[0], i);
  assign(b[1], u);
  assign(b[2], l);
  assign(b[3], f);
  assign(b[4], d);
}

void constant_memory(const KernelCase&, Buffers& b) {
  constexpr float kWeights[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
  constexpr float kItems[2] = {0.5f, 0.25f};
  constexpr double kValues[2][3] = {{1.5, 0, 0}, {2.5, 3.5, 0}};
  const auto x = values<float>(b[0]);
  auto y = values<float>(b[1]);
  const auto n = static_cast<std::size_t>(value<int>(b[2]));
  for (std::size_t i = 0; i < y.size(); ++i) {
    float sum = 0;
    for (std::size_t k = 0; k < 9; ++k) {
      if (i + k < n) sum = std::fma(x[i + k], kWeights[k], sum);
    }
    y[i] = static_cast<float>(double{sum + kItems[i & 1] + kWeights[i % 9] - 3.0f} +
                              kValues[i & 1][i % 3] + (i % 2 == 0 ? 'f' : 's'));
  }
  assign(b[1], y);
}

void local_switch(const KernelCase&, Buffers& b) {
  const auto x = values<std::uint32_t>(b[0]);
  auto y = values<std::uint32_t>(b[1]);
  const auto n = static_cast<std::size_t>(value<int>(b[2]));
  std::uint32_t stack[32] = {}, acc = 0;
  int top = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t v = x[i];
    switch (v & 15) {
      case 0:
        stack[top++ & 31] = v;
        break;
      case 1:
        acc += stack[--top & 31];
        break;
      case 2:
        acc -= 3;
        break;
      case 3:
        acc *= 5;
        break;
      case 4:
        acc ^= v;
        break;
      case 5:
        acc <<= 1;
        break;
      case 6:
        acc = static_cast<std::uint32_t>(static_cast<std::int32_t>(acc) >> 2);
        break;
      case 7:
        acc = ~acc;
        break;
      case 8:
        acc += v * v;
        break;
      case 9:
        acc |= 1;
        break;
      case 10:
        acc &= 0xff;
        break;
      default:
        acc += 1;
    }
  }
  for (std::size_t t = 0; t < y.size(); ++t) y[t] = acc + stack[t & 31];
  assign(b[1], y);
}

/// q + r of the first 64 elements by the last 64; `decimal` also adds x / 7 + x % 10.
template <typename T, bool decimal = false>
void divide(std::vector<std::byte>& bytes) {
  auto x = values<T>(bytes);
  for (std::size_t i = 0; i < 64; ++i) {
    const T a = x[i], d = x[i + 64];
    T sum = static_cast<T>(static_cast<T>(a / d) + static_cast<T>(a % d));
    if constexpr (decimal) sum = static_cast<T>(sum + a / 7 + a % 10);
    x[i] = sum;
  }
  assign(bytes, x);
}

void integer_division(const KernelCase&, Buffers& b) {
  divide<std::int64_t>(b[0]);
  divide<std::uint64_t>(b[1]);
  divide<std::int32_t, true>(b[2]);
  divide<std::uint32_t, true>(b[3]);
  divide<std::int16_t>(b[4]);
  divide<std::uint8_t>(b[5]);
}

void groups_tiles(const KernelCase&, Buffers& b) {
  auto x = values<int>(b[0]);
  const int n = value<int>(b[1]);
  const std::size_t count = x.size();
  std::vector<int> v = x;
  for (std::size_t d = 4; d > 0; d /= 2) {
    const std::vector<int> before = v;
    for (std::size_t i = 0; i < count; ++i) {
      v[i] += before[i % 8 + d < 8 ? i + d : i];
    }
  }
  for (std::size_t tile = 0; tile < count; tile += 8) {
    int any = 0, ballot = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      any |= v[tile + i] > 3;
      ballot |= (v[tile + i] & 1) << i;
    }
    x[tile] = v[tile] + any + ballot;
  }
  for (std::size_t warp = 0; warp < count; warp += 32) {
    std::vector<std::size_t> active;
    for (std::size_t i = warp; i < warp + 32; ++i) {
      if (v[i] > n) active.push_back(i);
    }
    for (std::size_t rank = 0; rank < active.size(); ++rank) {
      x[active[rank]] += static_cast<int>(active.size() + rank) + v[active[0]];
    }
  }
  assign(b[0], x);
}

void cub_warp(const KernelCase&, Buffers& b) {
  auto x = values<int>(b[0]);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += i % 32 == 0 ? 0 : x[i - 1];
  assign(b[0], x);
  auto d = values<double>(b[1]);
  const auto in = d;
  for (std::size_t warp = 0; warp < d.size() / 32; ++warp) {
    d[warp] = std::accumulate(in.begin() + static_cast<std::ptrdiff_t>(warp * 32),
                              in.begin() + static_cast<std::ptrdiff_t>(warp * 32 + 32), 0.0);
  }
  assign(b[1], d);
}

void cub_block(const KernelCase&, Buffers& b) {
  const auto x = values<int>(b[0]);
  auto f = values<float>(b[1]);
  auto sorted = x;
  std::sort(sorted.begin(), sorted.end());
  const int total = std::accumulate(x.begin(), x.end(), 0);
  int before = 0;
  std::vector<int> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = sorted[i] + before + total;
    before += x[i];
  }
  assign(b[0], out);
  f[0] = static_cast<float>(std::accumulate(f.begin(), f.end(), 0.0));
  assign(b[1], f);
}

/// The second pair of copies zero-fills the last 4 of 16 bytes; cp.async reads `n` bytes.
void async_copy(const KernelCase&, Buffers& b) {
  const auto x = values<float>(b[0]), z = values<float>(b[2]);
  const auto n = static_cast<std::size_t>(value<int>(b[3]));
  std::vector<float> y(512);
  for (std::size_t t = 0; t < 128; ++t) {
    const std::size_t r = 127 - t;
    std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(4 * r), 4,
                y.begin() + static_cast<std::ptrdiff_t>(4 * t));
    const float third = n >= 12 ? x[4 * t + 2] : 0.0f;
    y[4 * t] += x[4 * (128 + r) + 1] + z[r] + third;
  }
  assign(b[1], y);
}

double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return bits & 0x8000 ? -size : size;
}

/// c = a b over 16 columns. To it the kernel adds, as integers, the bits of pairs of half results
/// of the product over the first 8 columns.
void mma_half(const KernelCase&, Buffers& b) {
  const auto x = values<std::uint16_t>(b[0]), y = values<std::uint16_t>(b[1]);
  const auto product = [&](std::size_t i, std::size_t j, std::size_t columns) {
    double sum = 0;
    for (std::size_t k = 0; k < columns; ++k) sum += half(x[i * 16 + k]) * half(y[k * 8 + j]);
    return sum;
  };
  const auto pair = [&](std::size_t i, std::size_t j) {
    return static_cast<float>(to_half(product(i, j, 8)) | unsigned{to_half(product(i, j + 1, 8))}
                                                              << 16);
  };
  std::vector<float> c(128);
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 8; ++j) c[i * 8 + j] = static_cast<float>(product(i, j, 16));
  }
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t j = 0; j < 8; j += 2) {
      c[i * 8 + j] += pair(i, j);
      c[i * 8 + j + 1] += pair(i + 8, j);
    }
  }
  assign(b[2], c);
}

constexpr ReferenceRow kRows[] = {
    {"saxpy", saxpy},
    {"sgemm", sgemm},
    {"sum_all", sum_all},
    {"sum_blocks", sum_blocks},
    {"scan_shuffle", scan_shuffle},
    {"softmax", softmax},
    {"rmsnorm", rmsnorm},
    {"rope", rope},
    {"vector_loads", vector_loads},
    {"dots_f32", dots<float>},
    {"dots_f64", dots<double>},
    {"dots_i32", dots<std::int32_t>},
    {"dots_i16", dots<std::int16_t>},
    {"dots_u64", dots<std::uint64_t>},
    {"dots_u8", dots<std::uint8_t>},
    {"function_pointers", function_pointers},
    {"virtual_calls", virtual_calls},
    {"histogram", histogram},
    {"spin_lock", spin_lock},
    {"atomic_totals", atomic_totals},
    {"constant_memory", constant_memory},
    {"local_switch", local_switch},
    {"integer_division", integer_division},
    {"groups_tiles", groups_tiles},
    {"cub_warp", cub_warp},
    {"cub_block", cub_block},
    {"async_copy", async_copy},
    {"mma_half", mma_half},
};

}  // namespace

Buffers expected_results(const KernelCase& kernel_case) {
  Buffers buffers = inputs_of(kernel_case);
  for (const ReferenceRow& row : kRows) {
    if (kernel_case.reference != row.name) continue;
    row.reference(kernel_case, buffers);
    return buffers;
  }
  throw std::runtime_error("no reference named " + kernel_case.reference);
}

}  // namespace kernwright::sim
