#include "client/cli/journal.h"

#include <cerrno>
#include <fstream>

#include "client/cli/file_bytes.h"

namespace kiln::cli {

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(
    const std::string& path) {
  auto journal = std::make_unique<Journal>();
  std::ifstream lines(path);
  std::string id;
  while (std::getline(lines, id)) journal->done_.insert(id);
  journal->file_.reset(std::fopen(path.c_str(), "ae"));
  if (journal->file_ == nullptr) {
    return FileError(path, "written", errno);
  }
  return journal;
}

void Journal::Add(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (file_ == nullptr) return;
  std::fputs((id + "\n").c_str(), file_.get());
  std::fflush(file_.get());
}

}  // namespace kiln::cli
