// PTX whose kernels run as parts of a larger grid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// The PTX with the parameters of SliceForm in front of those of each .entry, and with every read
/// of %ctaid and %nctaid redirected; `yields` as in SliceForm. Functions that read them find them
/// in 24 bytes of shared memory. Line numbers stay. Throws NotSliceable for reads of %ctaid and
/// %nctaid as vectors, of %clusterid, %nclusterid and %gridid.
std::string slice_ptx(std::string_view ptx, bool yields);

/// A variable outside of functions, with values that may differ between modules.
struct PtxVariable {
  std::string name;  ///< lowered
  bool is_constant = false;
};

/// The .global and .const variables. Tables of the compiler (strings, quotients for sines) are left
/// out: they are not visible outside, and initialised as arrays.
std::vector<PtxVariable> ptx_state(std::string_view ptx);

}  // namespace kernwright
