#include "server/compile_pool.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "server/compile_pool_loop.h"

namespace kiln {

absl::StatusOr<std::unique_ptr<CompilePool>> CompilePool::Start(
    Options options) {
  if (access(options.executable.c_str(), X_OK) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("The program of the compile workers cannot be executed "
                    "(got {}).",
                    options.executable));
  }
  return std::unique_ptr<CompilePool>(
      new CompilePool(std::make_unique<Loop>(std::move(options))));
}

CompilePool::CompilePool(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

CompilePool::~CompilePool() = default;

uint64_t CompilePool::Submit(CompileRequest request,
                             const std::string& request_id, Done done) {
  return loop_->Submit(std::move(request), request_id, std::move(done));
}

void CompilePool::WhenArchitecturesKnown(
    std::function<void(const std::vector<int>&)> known) {
  loop_->WhenArchitecturesKnown(std::move(known));
}

void CompilePool::Cancel(uint64_t job) { loop_->Cancel(job); }

CompilePool::Counters CompilePool::counters() const {
  return loop_->counters();
}

}  // namespace kiln
