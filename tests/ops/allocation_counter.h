#pragma once

/// Counts heap allocations of the calling thread: malloc and its kin, and so operator new.
namespace sorot::support {

/// Counting lasts as long as the object; one at a time a thread.
class AllocationCounter {
 public:
  AllocationCounter() noexcept;
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;

  long count() const noexcept;
};

}  // namespace sorot::support
