#ifndef KILN_TESTS_PTX_TEMPLATE_PLANS_H_
#define KILN_TESTS_PTX_TEMPLATE_PLANS_H_

#include <ostream>
#include <string>
#include <vector>

#include "jit/compile/tuning.h"

namespace kiln::ptx {

// A small plan that runs a kernel template, or a way through one.
struct TemplatePlan {
  std::string name;
  std::string source_file;  // of the template: "conv_wgmma.cu"
  std::string text;         // without a grade
  std::string target = "sm_90a/132";
  bool has_products = false;  // on tensor cores, so that grades differ
  // As in InputOptions.
  std::vector<double> row_factors = {1};
  std::vector<double> channel_factors = {1};
  std::vector<double> image_factors = {1};
  Tuning tuning = {};
};

// With these candidates, not those predicted to be fastest.
inline TemplatePlan Tuned(TemplatePlan plan, const Tuning& tuning) {
  plan.tuning = tuning;
  return plan;
}

inline std::ostream& operator<<(std::ostream& out, const TemplatePlan& plan) {
  return out << plan.name;
}

// Together they run every template of an sm_90a device, and what is
// particular to sm_80. The same kinds as in bench/gpu_templates.py.
std::vector<TemplatePlan> TemplatePlans();

}  // namespace kiln::ptx

#endif  // KILN_TESTS_PTX_TEMPLATE_PLANS_H_
