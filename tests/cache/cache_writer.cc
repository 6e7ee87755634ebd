// The victim of kill_test: stores entries and says so, one number per line,
// after each is acknowledged.
//   cache_writer DIRECTORY FIRST COUNT [reader]

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cache/disk_cache.h"
#include "tests/cache/scratch_directory.h"
#include "tests/cache/test_payload.h"

namespace kiln {
namespace {

// Entries that are read back wrong.
int ReadAll(DiskCache* cache, int first, int count) {
  int bad = 0;
  for (int i = first; i < first + count; ++i) {
    const auto record = cache->Get(TestKey(i));
    if (record && record->payload != TestPayload(i)) ++bad;
  }
  return bad;
}

void WriteAll(DiskCache* cache, int first, int count) {
  int64_t stored = cache->counters().stores;
  for (int i = first; i < first + count; ++i) {
    cache->Put(TestKey(i), "text", TestPayload(i));
    const int64_t now_stored = cache->counters().stores;
    if (now_stored == stored) continue;
    stored = now_stored;
    dprintf(STDOUT_FILENO, "%d\n", i);
  }
}

int Main(int argc, char** argv) {
  if (argc < 4) return 2;
  spdlog::set_level(spdlog::level::off);
  DiskCache::Options options;
  options.directory = argv[1];
  const auto cache = DiskCache::Open(options);
  if (!cache.ok()) return 3;
  const int first = std::atoi(argv[2]);
  const int count = std::atoi(argv[3]);
  if (argc > 4) return ReadAll(cache->get(), first, count) == 0 ? 0 : 4;
  WriteAll(cache->get(), first, count);
  return 0;
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) { return kiln::Main(argc, argv); }
