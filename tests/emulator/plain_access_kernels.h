#pragma once

/// Kernels that access memory past the machine's wrappers. They are compiled to tell the race checker of it.
namespace sorot::inline v0::emulator {

struct PlainParams {
  int* data = nullptr;
};

// Each has one bug, at the lines marked so.
void stores_plainly(PlainParams p);
void loads_plainly(PlainParams p);
void stores_plainly_to_global(PlainParams p);
void stores_plainly_too_far(PlainParams p);

/// Has none.
void exchanges_plainly(PlainParams p);

}  // namespace sorot::inline v0::emulator
