#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "cuda/emulator/engine.h"

/// Streams, events and graphs. A stream runs what it is given at once and in order, or records it while it captures.
namespace sorot::inline v0::emulator {

using Work = std::function<Failure()>;

}  // namespace sorot::inline v0::emulator

struct CUstream_st {
  bool capturing = false;
  std::vector<sorot::emulator::Work> captured;
};

struct CUgraphExec_st {
  std::vector<sorot::emulator::Work> work;
};

struct CUevent_st {
  double milliseconds = -1;  ///< negative: not recorded
};

namespace sorot::inline v0::emulator {

CUstream_st* create_stream();
CUevent_st* create_event();
Failure destroy(CUstream_st* stream);
Failure destroy(CUevent_st* event);
Failure destroy(CUgraphExec_st* graph);

/// Runs work on a stream (null: the legacy one), or records it.
Failure submit(CUstream_st* stream, Work work);

Failure synchronize(CUstream_st* stream);
Failure record(CUevent_st* event, CUstream_st* stream);
Failure elapsed(CUevent_st* start, CUevent_st* stop, float& milliseconds);

Failure begin_capture(CUstream_st* stream);
Failure end_capture(CUstream_st* stream, CUgraphExec_st*& graph);
Failure replay(CUgraphExec_st* graph, CUstream_st* stream);

/// True while any stream captures: what CUDA then forbids must be refused.
bool capturing();

/// Runs a launch, and keeps a record of it.
Failure launch(const LaunchRequest& request);
std::vector<LaunchRecord> launch_records();
void clear_launch_records();

}  // namespace sorot::inline v0::emulator
