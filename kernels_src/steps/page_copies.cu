// Pages of caches to and from page-locked memory of the host.

/// An array with a page after the other.
struct Part {
  unsigned long long address;
  long long units;   // of 16 bytes, of a page
  long long offset;  // byte offset of the page in a host slot, in units
};

struct Moves {
  int pages[64], slots[64];
};

/// A block copies units of one page in one array. Few blocks suffice: the bus is slower than the
/// copies.
__global__ void copy_pages(const Part* parts, int count, uint4* host, long long slot_units,
                           Moves moves, int moved, int to_host) {
  for (int i = blockIdx.x; i < moved * count; i += gridDim.x) {
    const Part part = parts[i % count];
    const int move = i / count;
    uint4* const page = reinterpret_cast<uint4*>(part.address) + moves.pages[move] * part.units;
    uint4* const slot = host + moves.slots[move] * slot_units + part.offset;
    const uint4* const from = to_host ? page : slot;
    uint4* const to = to_host ? slot : page;
    for (long long k = threadIdx.x; k < part.units; k += blockDim.x) to[k] = from[k];
  }
}
