#ifndef KILN_CLIENT_CLI_SCHEDULE_TEXT_H_
#define KILN_CLIENT_CLI_SCHEDULE_TEXT_H_

#include <string>

#include "client/cli/terminal.h"
#include "kiln/v1/service.pb.h"

namespace kiln::cli {

// What the scheduler decided, indented to stand below the line of a target:
// each variant, its rewrites and kernels, and for each kernel the candidates,
// the chosen one marked.
std::string ScheduleText(const Terminal& terminal,
                         const v1::ScheduleReport& report);

// The same as an object. Numbers that the models do not know are missing.
Json ScheduleJson(const v1::ScheduleReport& report);

}  // namespace kiln::cli

#endif  // KILN_CLIENT_CLI_SCHEDULE_TEXT_H_
