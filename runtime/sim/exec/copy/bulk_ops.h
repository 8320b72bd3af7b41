// The handlers of bulk copies, tensor copies and remote stores, for full and masked code alike.
#pragma once

#include "sim/code/op.h"
#include "sim/ptx/types.h"

#include <cstdint>

namespace kernwright::sim {

/// Op::flags of cp.async.bulk, cp.reduce.async.bulk, st.async and red.async.
struct BulkForm {
  enum Kind : std::uint32_t {
    to_shared,       ///< global to .shared::cluster; a target, b source, c size, e mbarrier, f mask
    between_shared,  ///< .shared::cta to .shared::cluster; a target, b source, c size, e mbarrier
    to_global,       ///< .shared::cta to global, in a bulk group; a target, b source, c size
    tensor_to_shared,  ///< a target, b map, c coordinates and offsets, e mbarrier, f mask
    tensor_to_global,  ///< a map, b coordinates, c source
    tensor_prefetch,   ///< a map, b coordinates and offsets
    store,             ///< st.async and red.async: a target, b values, c mbarrier
    prefetch,          ///< a global address, b bytes
  };
  Kind kind = prefetch;
  /// Addresses (in written order) in registers of 32 bits.
  std::uint32_t narrow = 0;
  bool multicast = false;
  bool local_target = false;  ///< the target is .shared::cta
  bool im2col = false;        ///< of a tensor; only loads have offsets
  std::uint32_t rank = 0;     ///< of a tensor; values of a store
  ptx::AtomOp reduction = ptx::AtomOp::none;
  ptx::Type type = ptx::Type::none;  ///< of a reduction or a store

  std::uint32_t pack() const noexcept;
  static BulkForm unpack(std::uint32_t flags) noexcept;
};

const Op* bulk_copy(const Op* op, Warp& warp);
const Op* bulk_commit(const Op* op, Warp& warp);
const Op* bulk_wait(const Op* op, Warp& warp);

}  // namespace kernwright::sim
