#ifndef KILN_SERVER_IDLE_CHOICES_H_
#define KILN_SERVER_IDLE_CHOICES_H_

#include <string>
#include <vector>

#include "jit/compile/compile_request.h"

namespace kiln {

// The parts of the request's variant, "conv1" or "rows2", without which the
// plan would be scheduled the same: no kernel of it has such a choice. None for
// "auto" and "eager". Takes as long as two or three schedules.
std::vector<std::string> IdleChoices(const CompileRequest& request);

}  // namespace kiln

#endif  // KILN_SERVER_IDLE_CHOICES_H_
