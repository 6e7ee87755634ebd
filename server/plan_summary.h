#ifndef KILN_SERVER_PLAN_SUMMARY_H_
#define KILN_SERVER_PLAN_SUMMARY_H_

#include <string>
#include <string_view>

namespace kiln {

// The ops of the plan in a key text, in order: "conv2d group_norm tanh".
// Empty for a text without a plan.
std::string SummarizeKeyText(std::string_view key_text);

}  // namespace kiln

#endif  // KILN_SERVER_PLAN_SUMMARY_H_
