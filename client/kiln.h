#ifndef KILN_CLIENT_KILN_H_
#define KILN_CLIENT_KILN_H_

// The C++ client of Kiln. A program includes this file, links Kiln::kiln, and
//
//   1. connects (kiln::Client), which starts a daemon if none answers;
//   2. builds a plan (kiln::PlanBuilder, or kiln::ParsePlanText);
//   3. compiles it for a target: kernels come from the cache or from NVRTC;
//   4. opens a session, shares memory with the daemon (kiln::SharedBuffer),
//      and executes.
//
// examples/client/example.cc is a whole program. Everything that can fail
// returns absl::Status or absl::StatusOr; nothing throws.

#include "client/buffer.h"           // IWYU pragma: export
#include "client/client.h"           // IWYU pragma: export
#include "client/compiled_plan.h"    // IWYU pragma: export
#include "client/connect_options.h"  // IWYU pragma: export
#include "client/plan_builder.h"     // IWYU pragma: export
#include "client/session.h"          // IWYU pragma: export
#include "jit/plan/errors.h"         // IWYU pragma: export
#include "jit/plan/plan_text.h"      // IWYU pragma: export

#endif  // KILN_CLIENT_KILN_H_
