#ifndef KILN_SERVER_SCHEDULE_REPORT_CONVERTER_H_
#define KILN_SERVER_SCHEDULE_REPORT_CONVERTER_H_

#include "jit/compile/schedule_report.h"
#include "kiln/v1/service.pb.h"

namespace kiln {

v1::ScheduleReport ToProto(const ScheduleReport& report);

}  // namespace kiln

#endif  // KILN_SERVER_SCHEDULE_REPORT_CONVERTER_H_
