#ifndef KILN_SERVER_REFLECTION_SERVICE_H_
#define KILN_SERVER_REFLECTION_SERVICE_H_

#include "server/reflection.grpc.pb.h"

namespace kiln {

// Answers what services there are and the files that describe them.
class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
  grpc::ServerBidiReactor<grpc::reflection::v1alpha::ServerReflectionRequest,
                          grpc::reflection::v1alpha::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext* context) override;
};

}  // namespace kiln

#endif  // KILN_SERVER_REFLECTION_SERVICE_H_
