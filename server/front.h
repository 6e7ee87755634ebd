#ifndef KILN_SERVER_FRONT_H_
#define KILN_SERVER_FRONT_H_

#include <chrono>
#include <memory>
#include <string>

#include "cache/disk_cache.h"
#include "server/activity.h"
#include "server/artifact_provider.h"
#include "server/device_table.h"
#include "server/event_loop.h"
#include "server/health_board.h"
#include "server/keyed_request.h"
#include "server/options.h"
#include "server/request_recorder.h"
#include "server/session_table.h"
#include "server/tuning_store.h"

namespace kiln {

// What the services of every connection share. Built by Daemon; outlives every
// connection. The members are thread-safe.
struct Front {
  Options options;
  std::chrono::steady_clock::time_point started;
  std::string nvrtc_version;  // empty: none found
  std::string toolchain_id;   // as it stands in keys; empty: none
  std::unique_ptr<KeyedRequestTable> requests;
  std::unique_ptr<TuningStore> tunings;

  Activity activity;  // calls that do work; draining waits for them
  Activity streams;   // of sessions, which only the drain's end closes
  std::unique_ptr<DiskCache> disk;
  std::unique_ptr<ArtifactProvider> artifacts;
  std::unique_ptr<RequestRecorder> recorder;  // null: not asked for
  std::unique_ptr<SessionTable> sessions;
  HealthBoard health;
  std::unique_ptr<DeviceTable> devices;    // tells `health`
  std::unique_ptr<EventLoop> maintenance;  // long work on the cache
};

}  // namespace kiln

#endif  // KILN_SERVER_FRONT_H_
