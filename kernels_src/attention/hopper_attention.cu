// Attention of many queries on Hopper: producer warps load tiles of keys and values by TMA into the
// stages of a pipeline, and consumer warpgroups of 64 queries multiply the tiles (wgmma). Products
// of the next keys run beside the softmax of the current keys, and the warpgroups alternate at the
// tensor cores. Where queries have two or three stages, the next rows are loaded during the
// mainloop of the current rows, and the first products of the next rows overlap the last products
// of the current rows.
#include <kernwright/attention_group.cuh>

using namespace kernwright;

/// Queries, keys, values and weights are of one type of 16 bits.
template <typename T>
struct Form {
  using Out = T;
  using Scores = T;
  static constexpr int kLift = 0;
  static constexpr bool kKeeps = false;

  template <int kScores>
  __device__ static __forceinline__ void pack(const float (&s)[kScores],
                                              unsigned (&weights)[kScores / 8][4]) {
    pack_weights<T>(s, weights);
  }
  template <typename Config>
  __device__ static __forceinline__ unsigned long long describe_values(unsigned values) {
    return matrix_descriptor(values, Config::kKeyColumn);
  }
  /// Queued: weights times 16 keys' values.
  template <typename Config>
  __device__ static __forceinline__ void multiply_values(const unsigned (&weights)[4],
                                                         unsigned long long values, int step,
                                                         int adds) {
    RowAccumulatorProducts<T>::template add<Config::kValueDim, kResult, true>(
        weights, further(values, step * 2048), adds);
  }
};
/// Launched with Of::kThreads threads. Dynamic shared memory: queries of each warpgroup, stages of
/// keys, stages of values, barriers (two for each slot of queries and numbered part, four for each
/// stage, one for the end), the numbered parts.
template <typename T, typename Config, Extras kExtras>
__global__ void __launch_bounds__(Config::kBound, 1)
    hopper_attention(const __grid_constant__ TensorMap map_q,
                     const __grid_constant__ TensorMap map_k,
                     const __grid_constant__ TensorMap map_v,
                     const __grid_constant__ TensorMap map_out,
                     const __grid_constant__ AttentionCall call,
                     const __grid_constant__ HopperPlan plan) {
  extern __shared__ __align__(1024) unsigned char storage[];
  const Shared<Config> shared(storage);
  if (threadIdx.x == 0) {
    prefetch(map_q);
    prefetch(map_k);
    prefetch(map_v);
    prefetch(map_out);
    shared.init();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    release_registers<Config>();
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) number_parts<Config>(shared, call, plan, [](const Part&) {});
    if (warp == 1) load_queries<Config>(shared, map_q, call, plan);
    if (warp > 1) {
      const TensorMap& map = warp == 2 ? map_k : map_v;
      if constexpr (Config::kPages) {
        load_pages<Config>(shared, map, warp == 3, call, plan);
      } else {
        load_tiles<Config>(shared, map, warp == 3, call, plan);
      }
    }
  } else {
    take_registers<Config>();
    attend<Form<T>, Config, kExtras>(shared, map_out, call);
  }
}
