// Runs plans' kernels by the interpreter and compares with the reference; see
// kUsage.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "tests/jit/compile/compile_testing.h"
#include "tests/ptx/comparison.h"

namespace kiln::ptx {
namespace {

constexpr char kUsage[] =
    R"(Runs plans' kernels by the interpreter of PTX and compares with the reference.

  ptx_run TARGET PLAN... [OPTION...]       e.g. ptx_run sm_90a/132 p3.kiln --inf

  --inf             with an infinity and a NaN among the inputs
  --off-grid[=N]    tensors begin N elements (1) behind what is aligned
  --seed=N          other inputs
  --schedule=N      interrupts warps at random
  --resident=N      so many blocks at a time
  --rounds          sums of warpgroups' products as tensor cores round them
  --room=NAME       tight, ample, vast, warps or plain: what schedules leave
                    free
  --conv=N --rows=N --images=1 --correlations=1 --linear=N
                    other candidates, as `kiln tune` counts them
  --variant=N       of the artifact

The kernel sources are those of the tree that the program was built from.
Exit status: 0 all plans agree with the reference within the tolerance of
ptx_execution_test, 1 not, 2 usage.
)";

struct Options {
  std::string target;
  std::vector<std::string> files;
  PlanRunOptions run;
  InputOptions inputs;
};

bool ParseOption(const std::string& text, Options* options) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == text.npos ? "" : text.substr(equals + 1);
  const int number = std::atoi(value.c_str());
  if (name == "--inf") {
    options->inputs.has_specials = true;
  } else if (name == "--off-grid") {
    options->run.off_grid = value.empty() ? 1 : number;
  } else if (name == "--seed") {
    options->inputs.seed = number;
  } else if (name == "--schedule") {
    options->run.schedule_seed = number;
  } else if (name == "--variant") {
    options->run.variant = number;
  } else if (name == "--conv") {
    options->run.tuning.conv = number;
  } else if (name == "--rows") {
    options->run.tuning.rows = number;
  } else if (name == "--images") {
    options->run.tuning.images = number;
  } else if (name == "--correlations") {
    options->run.tuning.correlations = number;
  } else if (name == "--linear") {
    options->run.tuning.linear = number;
  } else if (name == "--rounds") {
    options->run.rounds_sums = true;
  } else if (name == "--resident") {
    options->run.resident_blocks = number;
  } else if (name == "--room") {
    options->run.room = value == "ample"   ? Room::kAmple
                        : value == "vast"  ? Room::kVast
                        : value == "warps" ? Room::kWarps
                        : value == "plain" ? Room::kPlain
                                           : Room::kTight;
  } else {
    return false;
  }
  return true;
}

// Returns whether the plan ran and its results are right.
bool RunFile(const std::string& path, const Options& options) {
  std::ifstream file(path);
  std::stringstream text;
  if (!(text << file.rdbuf())) {
    fmt::print("{}: FAILED cannot be read\n", path);
    return false;
  }
  const absl::StatusOr<PlanKernels> kernels =
      CompileToPtx(text.str(), options.target, TestToolchain(), options.run);
  if (!kernels.ok()) {
    fmt::print("{}: FAILED {}\n", path, kernels.status().ToString());
    return false;
  }
  const absl::StatusOr<ReferenceRun> reference =
      RunReference(kernels->canonical, options.inputs);
  const absl::StatusOr<Comparison> result =
      reference.ok() ? CompareWithReference(*kernels, *reference, options.run)
                     : reference.status();
  if (!result.ok()) {
    fmt::print("{}: FAILED {}\n", path, result.status().ToString());
    return false;
  }
  const double tolerance = ToleranceOf(kernels->canonical);
  const bool is_near = result->norm_error <= tolerance;
  fmt::print(
      "{}: {} norm error {:.2e}{}, max error {:.2e}, {} wrong of {} not "
      "finite, {:.2f} s{}{}\n",
      path, fmt::join(kernels->files, " "), result->norm_error,
      is_near ? "" : fmt::format(" (WRONG: tolerance {:.0e})", tolerance),
      result->max_error, result->num_wrong, result->num_special,
      result->run_seconds, result->num_wrong > 0 ? ": " : "",
      result->first_wrong);
  return is_near && result->num_wrong == 0;
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    if (text == "--help") {
      fmt::print("{}", kUsage);
      return 0;
    }
    if (text.starts_with("--")) {
      if (!ParseOption(text, &options)) {
        fmt::print(stderr, "There is no option {}.\n", text);
        return 2;
      }
    } else if (options.target.empty()) {
      options.target = text;
    } else {
      options.files.push_back(text);
    }
  }
  if (options.files.empty()) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  bool good = true;
  for (const std::string& path : options.files) {
    good &= RunFile(path, options);
    std::fflush(stdout);
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace kiln::ptx

int main(int argc, char** argv) { return kiln::ptx::Main(argc, argv); }
