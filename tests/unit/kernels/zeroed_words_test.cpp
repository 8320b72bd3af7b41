// Words shared by launches. Each owner has its own; every launch leaves them zero.
#include "kernels_src/zeroed_words.h"

#include "core/graph/graph.h"
#include "kernels_src/attention/attention.h"
#include "kernels_src/cast/cast.h"
#include "kernels_src/reduce/reduce.h"
#include "kernels_src/scan/scan.h"
#include "memory/memory_resource.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <complex>
#include <set>
#include <thread>

using namespace kernwright;
using namespace kernwright::test;
using kernels::zeroed_words;

namespace {

bool all_zero(const Array& words) {
  const std::vector<unsigned char> bytes = bytes_of(words);
  return std::all_of(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte == 0; });
}

Array ones_of(const Shape& shape) {
  const std::vector<float> values(static_cast<std::size_t>(element_count(shape)), 1.0F);
  return Array::from_host(device(), values.data(), shape, ScalarType::float32);
}

float last_of(const Array& array, const Stream& stream) {
  std::vector<float> values(static_cast<std::size_t>(array.size()));
  array.to_host(values.data(), stream);
  return values.back();
}

/// A row of more tiles than a block has threads.
void a_long_scan_is_right(const Stream& stream) {
  const std::int64_t length = 2'100'000;
  const std::vector<std::complex<double>> ones(static_cast<std::size_t>(length), 1.0);
  const Array line = Array::from_host(device(), ones.data(), {length}, ScalarType::complex128);
  const Array sums = kernels::scan(line, {}, stream);
  std::complex<double> last;
  sums.slice(0, length - 1, 1, 1).to_host(&last, stream);
  CHECK(last == static_cast<double>(length));
}

/// Blocks with parts of a context: of equal values the result is the same.
void attention_is_right(const Stream& stream) {
  const auto halves = [&](const Shape& shape) {
    return kernels::cast(ones_of(shape), ScalarType::float16, stream);
  };
  const Array query = halves({1, 2, 1, 64}), cache = halves({1, 2, 200, 64});
  kernels::AttentionOptions options;
  options.splits = 3;
  const kernels::Attended got = kernels::decode_attention(query, cache, cache, options, stream);
  CHECK(last_of(kernels::cast(got.out, ScalarType::float32, stream), stream) == 1);
}

/// Runs a kernel of each kind: those counting blocks, and those posting values.
void sums_are_right(const Stream& stream) {
  const Array line = ones_of({70'000});
  const Array rows = ones_of({2, 60'000});
  const auto sum = [&](const Array& of, std::vector<int> axes) {
    kernels::ReductionCall call;
    call.op = kernels::Reduction::sum;
    call.axes = std::move(axes);
    return last_of(kernels::reduce(of, call, stream), stream);
  };
  for (int i = 0; i < 3; ++i) {
    CHECK(sum(line, {0}) == 70'000);
    CHECK(sum(rows, {1}) == 60'000);
    CHECK(sum(rows.transpose(), {0}) == 60'000);
    CHECK(last_of(kernels::scan(line, {}, stream), stream) == 70'000);
  }
}

}  // namespace

TEST_CASE("zeroed words: launches of a stream share them, and leave them zero") {
  const kernels::SharedWordsOnSim shared;
  for (const Stream& stream : {Stream::create(device()), Stream::legacy(device())}) {
    const Array words = zeroed_words(5, stream);
    CHECK(zeroed_words(kernels::kZeroedWords, stream).address() == words.address());
    sums_are_right(stream);
    a_long_scan_is_right(stream);
    a_long_scan_is_right(stream);
    attention_is_right(stream);
    attention_is_right(stream);
    stream.synchronize();
    CHECK(all_zero(words));
  }
}

TEST_CASE("zeroed words: too many are of one launch alone, as are all on a stream of others") {
  const kernels::SharedWordsOnSim shared;
  const Stream stream = Stream::create(device());
  const Array many = zeroed_words(kernels::kZeroedWords + 1, stream);
  CHECK(many.size() == static_cast<std::int64_t>(kernels::kZeroedWords) + 1);
  CHECK(zeroed_words(kernels::kZeroedWords + 1, stream).address() != many.address());
  const Stream borrowed = Stream::borrow(device(), stream.handle());
  const Array first = zeroed_words(3, borrowed), second = zeroed_words(3, borrowed);
  CHECK(first.address() != second.address());
  stream.synchronize();
  CHECK((all_zero(many) && all_zero(first) && all_zero(second)));
}

TEST_CASE("zeroed words: on the simulated device each launch has its own") {
  if (!device().is_simulated()) return;
  const Stream stream = Stream::create(device());
  const Array first = zeroed_words(3, stream), second = zeroed_words(3, stream);
  CHECK(first.address() != second.address());
}

TEST_CASE("zeroed words: a stream that goes leaves its words to the next one") {
  const kernels::SharedWordsOnSim shared;
  CUstream handle = nullptr;
  CUdeviceptr address = 0;
  {
    const Stream stream = Stream::create(device());
    handle = stream.handle();
    address = zeroed_words(1, stream).address();
    sums_are_right(stream);
  }
  if (device().is_simulated()) {
    CHECK(device().driver().cuStreamQuery(handle) == CUDA_ERROR_INVALID_HANDLE);
  }
  device().synchronize();
  default_resource(device())->trim();  // memory waiting for the stream's next use keeps the stream
  CUstream next_handle = nullptr;
  std::vector<Stream> others;  // words of earlier streams may come first
  CUdeviceptr found = 0;
  while (found != address && others.size() < 200) {
    others.push_back(Stream::create(device()));
    found = zeroed_words(1, others.back()).address();
  }
  CHECK(found == address);
  sums_are_right(others.back());
  next_handle = others.back().handle();
  others.clear();
  if (device().is_simulated()) {  // the second user of the words goes as the first one did
    CHECK(device().driver().cuStreamQuery(next_handle) == CUDA_ERROR_INVALID_HANDLE);
  }
}

TEST_CASE("zeroed words: a device that was reset has new ones") {
  if (!device().is_simulated()) return;  // on a GPU a reset ends all other tests' arrays
  const kernels::SharedWordsOnSim shared;
  sums_are_right(Stream::legacy(device()));
  device().reset();
  sums_are_right(Stream::legacy(device()));
}

TEST_CASE("zeroed words: streams that live at once have words of their own, in any threads") {
  const kernels::SharedWordsOnSim shared;
  for (int round = 0; round < 2; ++round) {
    std::vector<Stream> streams;
    std::set<CUdeviceptr> addresses;
    for (int i = 0; i < 80; ++i) {
      streams.push_back(Stream::create(device()));
      addresses.insert(zeroed_words(1, streams.back()).address());
    }
    CHECK(addresses.size() == 80);
  }
  const Stream one = Stream::create(device());
  std::vector<CUdeviceptr> seen(4);
  std::vector<std::thread> threads;
  for (CUdeviceptr& address : seen) {
    threads.emplace_back([&one, &address] { address = zeroed_words(1, one).address(); });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::set(seen.begin(), seen.end()).size() == 1);
}

TEST_CASE("zeroed words: a graph has its own, filled whenever it is launched") {
  const kernels::SharedWordsOnSim shared;
  const Stream stream = Stream::create(device());
  const CUdeviceptr outside = zeroed_words(1, stream).address();
  Array inside, again;
  Graph graph(device());
  graph.capture(stream, [&] {
    inside = zeroed_words(1, stream);
    again = zeroed_words(1, stream);
  });
  CHECK(inside.address() == again.address());
  CHECK(inside.address() != outside);
}
