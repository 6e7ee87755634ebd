#ifndef KILN_CLIENT_CLI_JOURNAL_H_
#define KILN_CLIENT_CLI_JOURNAL_H_

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "absl/status/statusor.h"

namespace kiln::cli {

// The ids of finished work, one on each line of a file that only grows: what a
// prewarm run leaves for the run that resumes it. Thread-safe.
class Journal {
 public:
  // A journal that remembers nothing.
  Journal() = default;
  // Reads what `path` holds, and appends to it.
  //
  // Errors: those of FileError (file_bytes.h): it cannot be opened for writing.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(const std::string& path);

  bool Contains(const std::string& id) const { return done_.contains(id); }
  // Reaches the file before it returns.
  void Add(const std::string& id);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unordered_set<std::string> done_;  // as it was opened
  std::mutex mutex_;
  std::unique_ptr<std::FILE, Close> file_;  // guarded by mutex_
};

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_JOURNAL_H_
