#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Device memory: one range of addresses which the host cannot touch, with a guard page around every allocation.
namespace sorot::inline v0::emulator {

struct Allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::uintptr_t first_page = 0;
  std::size_t page_bytes = 0;
  std::uint64_t number = 0;  ///< counts from 1: "allocation 3"

  bool holds(std::uintptr_t address, std::size_t size) const {
    return address >= begin && size <= bytes && address - begin <= bytes - size;
  }
};

class DeviceMemory {
 public:
  /// Null if there is no room. Filled with NaN.
  void* allocate(std::size_t bytes);

  /// False for what is no live allocation.
  bool release(void* memory);

  /// The live allocation that holds the whole range, or null.
  const Allocation* find(const void* address, std::size_t bytes) const;

  /// Whether an address is in the range that belongs to the device, allocated or not.
  bool owns(const void* address) const;

  /// Lets the host in, or keeps it out again: of all of it, or of one allocation.
  void open(bool accessible) const;
  static void open(const Allocation& allocation, bool accessible);

  /// The first allocation whose neighbourhood was written, described; empty if all are well. Needs open(true).
  std::string damage() const;

  /// "byte 12 of allocation 3 (4096 bytes)", "4 bytes behind allocation 3 (4096 bytes)", "0x7f00, which is not
  /// device memory".
  std::string describe(const void* address) const;

  const std::vector<Allocation>& allocations() const { return allocations_; }

  /// Changes with every allocate and release: what a cache of ranges must agree with.
  std::uint64_t version() const { return version_; }

 private:
  bool reserve();

  std::uintptr_t arena_ = 0;
  std::size_t arena_bytes_ = 0;
  std::vector<Allocation> allocations_;  ///< by address
  std::uint64_t last_number_ = 0;
  std::uint64_t version_ = 0;
};

}  // namespace sorot::inline v0::emulator
