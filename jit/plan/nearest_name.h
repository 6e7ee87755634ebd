#ifndef KILN_JIT_PLAN_NEAREST_NAME_H_
#define KILN_JIT_PLAN_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

// The candidate that a misspelt `name` most likely means: the one of least
// edit distance (Levenshtein), if at most a third of the name differs. Empty
// if there is none.
std::string_view NearestName(std::string_view name,
                             const std::vector<std::string_view>& candidates);

// "; did you mean 'conv2d'?", or nothing.
std::string DidYouMean(std::string_view name,
                       const std::vector<std::string_view>& candidates);

}  // namespace kiln

#endif  // KILN_JIT_PLAN_NEAREST_NAME_H_
