#ifndef KILN_CACHE_LOCK_HOLDER_H_
#define KILN_CACHE_LOCK_HOLDER_H_

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace kiln {

// For messages: "pid 4711" if `text`, what stands in a lock file, starts with
// the id of a process that has the file open; else "pid unknown". A holder that
// was killed leaves its id there, and who holds the lock since may be no
// process of ours, or in another container. `file`: fstat of the lock file.
std::string DescribeLockHolder(std::string_view text, const struct stat& file);

}  // namespace kiln

#endif  // KILN_CACHE_LOCK_HOLDER_H_
