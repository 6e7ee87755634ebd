#include "server/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <string>
#include <unordered_set>

namespace kiln {
namespace {

using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

constexpr const char* kServices[] = {
    "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection",
    "kiln.v1.Buffers",       "kiln.v1.Cache",
    "kiln.v1.Compiler",      "kiln.v1.Executor",
};

// `file` and all it imports, each once.
void AddFile(const google::protobuf::FileDescriptor& file,
             std::unordered_set<std::string>& seen,
             ServerReflectionResponse& response) {
  if (!seen.insert(file.name()).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(
      proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFile(*file.dependency(i), seen, response);
  }
}

void DescribeFile(const google::protobuf::FileDescriptor* file,
                  ServerReflectionResponse& response) {
  if (file == nullptr) {
    response.mutable_error_response()->set_error_code(grpc::NOT_FOUND);
    response.mutable_error_response()->set_error_message("Not found");
    return;
  }
  std::unordered_set<std::string> seen;
  AddFile(*file, seen, response);
}

void Answer(const ServerReflectionRequest& request,
            ServerReflectionResponse& response) {
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const google::protobuf::DescriptorPool& pool =
      *google::protobuf::DescriptorPool::generated_pool();
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const char* name : kServices) {
        response.mutable_list_services_response()->add_service()->set_name(
            name);
      }
      return;
    case ServerReflectionRequest::kFileByFilename:
      return DescribeFile(pool.FindFileByName(request.file_by_filename()),
                          response);
    case ServerReflectionRequest::kFileContainingSymbol:
      return DescribeFile(
          pool.FindFileContainingSymbol(request.file_containing_symbol()),
          response);
    default:
      response.mutable_error_response()->set_error_code(grpc::UNIMPLEMENTED);
      response.mutable_error_response()->set_error_message(
          "kiln.v1 has no extensions");
  }
}

class Stream : public grpc::ServerBidiReactor<ServerReflectionRequest,
                                              ServerReflectionResponse> {
 public:
  Stream() { StartRead(&request_); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    response_.Clear();
    Answer(request_, response_);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

  ServerReflectionRequest request_;
  ServerReflectionResponse response_;
};

}  // namespace

grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse>*
ReflectionService::ServerReflectionInfo(grpc::CallbackServerContext*) {
  return new Stream;
}

}  // namespace kiln
