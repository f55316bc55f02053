#include "cuda/emulator/stream.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <utility>

namespace sorot::inline v0::emulator {
namespace {

constexpr std::size_t kMostRecords = 1 << 16;

/// Handles that are alive. A handle that is none of them is refused, not followed.
struct Handles {
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::vector<std::unique_ptr<CUevent_st>> events;
  std::vector<std::unique_ptr<CUgraphExec_st>> graphs;
};
Handles handles;
std::deque<LaunchRecord> records;

template <class Handle>
auto find(const std::vector<std::unique_ptr<Handle>>& all, const Handle* handle) {
  return std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.get() == handle; });
}

template <class Handle>
bool alive(const std::vector<std::unique_ptr<Handle>>& all, const Handle* handle) {
  return find(all, handle) != all.end();
}

template <class Handle>
Failure erase(std::vector<std::unique_ptr<Handle>>& all, const Handle* handle, const char* what) {
  const auto found = find(all, handle);
  if (found == all.end()) return {kErrorInvalidHandle, std::string("this is no live ") + what};
  all.erase(found);
  return {};
}

Failure check_stream(const CUstream_st* stream) {
  if (stream == nullptr || alive(handles.streams, stream)) return {};
  return {kErrorInvalidHandle, "this is no live stream"};
}

double now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

CUstream_st* create_stream() { return handles.streams.emplace_back(std::make_unique<CUstream_st>()).get(); }
CUevent_st* create_event() { return handles.events.emplace_back(std::make_unique<CUevent_st>()).get(); }
Failure destroy(CUstream_st* stream) { return erase(handles.streams, stream, "stream"); }
Failure destroy(CUevent_st* event) { return erase(handles.events, event, "event"); }
Failure destroy(CUgraphExec_st* graph) { return erase(handles.graphs, graph, "graph"); }

Failure submit(CUstream_st* stream, Work work) {
  if (Failure f = check_stream(stream)) return f;
  if (stream != nullptr && stream->capturing) {
    stream->captured.push_back(std::move(work));
    return {};
  }
  if (stream == nullptr && capturing()) {
    return {kErrorCaptureUnsupported, "the legacy default stream cannot be used while another stream captures"};
  }
  return work();
}

Failure synchronize(CUstream_st* stream) {
  if (Failure f = check_stream(stream)) return f;
  if (stream != nullptr && stream->capturing)
    return {kErrorCaptureUnsupported, "a stream that captures cannot be waited for"};
  return {};
}

Failure record(CUevent_st* event, CUstream_st* stream) {
  if (!alive(handles.events, event)) return {kErrorInvalidHandle, "this is no live event"};
  return submit(stream, [event]() -> Failure {
    if (!alive(handles.events, event)) return {kErrorInvalidHandle, "this is no live event"};
    event->milliseconds = now();
    return {};
  });
}

Failure elapsed(CUevent_st* start, CUevent_st* stop, float& milliseconds) {
  for (const CUevent_st* event : {start, stop}) {
    if (!alive(handles.events, event)) return {kErrorInvalidHandle, "this is no live event"};
    if (event->milliseconds < 0) return {kErrorInvalidHandle, "this event was never recorded"};
  }
  milliseconds = static_cast<float>(stop->milliseconds - start->milliseconds);
  return {};
}

Failure begin_capture(CUstream_st* stream) {
  if (Failure f = check_stream(stream)) return f;
  if (stream == nullptr) return {kErrorCaptureUnsupported, "the legacy default stream cannot capture"};
  if (stream->capturing) return {kErrorCaptureInvalidated, "this stream captures already"};
  stream->capturing = true;
  stream->captured.clear();
  return {};
}

Failure end_capture(CUstream_st* stream, CUgraphExec_st*& graph) {
  if (Failure f = check_stream(stream)) return f;
  if (stream == nullptr || !stream->capturing) return {kErrorCaptureInvalidated, "this stream does not capture"};
  stream->capturing = false;
  graph = handles.graphs.emplace_back(std::make_unique<CUgraphExec_st>()).get();
  graph->work = std::exchange(stream->captured, {});
  return {};
}

Failure replay(CUgraphExec_st* graph, CUstream_st* stream) {
  if (!alive(handles.graphs, graph)) return {kErrorInvalidHandle, "this is no live graph"};
  return submit(stream, [graph]() -> Failure {
    if (!alive(handles.graphs, graph)) return {kErrorInvalidHandle, "this is no live graph"};
    for (const Work& work : graph->work) {
      if (Failure f = work()) return f;
    }
    return {};
  });
}

bool capturing() {
  return std::any_of(handles.streams.begin(), handles.streams.end(), [](const auto& s) { return s->capturing; });
}

Failure launch(const LaunchRequest& request) {
  if (Failure f = engine.launch(request)) return f;
  if (records.size() == kMostRecords) records.pop_front();
  records.push_back(request.record);
  return {};
}

std::vector<LaunchRecord> launch_records() { return {records.begin(), records.end()}; }
void clear_launch_records() { records.clear(); }

}  // namespace sorot::inline v0::emulator
