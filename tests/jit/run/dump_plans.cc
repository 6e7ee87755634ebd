// Prints the plans that the GPU checks run: every shape set and random plans,
// as blocks "== SET/NAME" and plan text, the format of tests/goldens/cases.
#include <cstdio>
#include <string>

#include "jit/plan/plan_text.h"
#include "tests/jit/plan/plan_generator.h"
#include "tests/shape_sets.h"

namespace {

constexpr int kRandomPlans = 300;

void Print(const std::string& set, const std::string& name,
           const std::string& text) {
  std::printf("== %s/%s\n%s\n", set.c_str(), name.c_str(), text.c_str());
}

}  // namespace

int main() {
  for (const std::string& set : kiln::ShapeSetNames()) {
    for (const kiln::NamedPlan& plan : kiln::PlansOfShapeSet(set)) {
      Print(set, plan.name, plan.text);
    }
  }
  kiln::PlanGenerator generator(/*seed=*/1);
  for (int i = 0; i < kRandomPlans; ++i) {
    Print("random", std::to_string(i), kiln::ToText(generator.Next()));
  }
  return 0;
}
