#include "cache/lock_holder.h"

#include <filesystem>
#include <system_error>

namespace kiln {
namespace {

namespace fs = std::filesystem;

// As far as this process may see.
bool HasOpen(const std::string& pid, const struct stat& file) {
  std::error_code error;
  fs::directory_iterator descriptor("/proc/" + pid + "/fd", error);
  for (; !error && descriptor != fs::directory_iterator();
       descriptor.increment(error)) {
    struct stat open = {};
    if (stat(descriptor->path().c_str(), &open) == 0 &&
        open.st_dev == file.st_dev && open.st_ino == file.st_ino) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string DescribeLockHolder(std::string_view text, const struct stat& file) {
  const std::string pid(text.substr(0, text.find_first_not_of("0123456789")));
  return !pid.empty() && HasOpen(pid, file) ? "pid " + pid : "pid unknown";
}

}  // namespace kiln
