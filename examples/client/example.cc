// A whole program: compiles relu(conv2d(x, w) + b) for the `cpu` device, runs
// it on memory that it shares with the daemon, and prints a value.
//
//   example [SOCKET]
#include <cstdio>

#include "client/kiln.h"

namespace {

absl::Status Run(const kiln::ConnectOptions& options) {
  // Finds this user's daemon, or starts one that leaves after ten idle minutes.
  absl::StatusOr<kiln::Client> client = kiln::Client::Connect(options);
  if (!client.ok()) return client.status();

  kiln::PlanBuilder builder;
  const auto x = builder.Input("x", kiln::DataType::kF32, {1, 3, 8, 8});
  const auto w = builder.Param("w", kiln::DataType::kF32, {4, 3, 3, 3});
  const auto b = builder.Param("b", kiln::DataType::kF32, {4});
  const auto conv = builder.Conv2d(x, w, b, {.padding = {1, 1}});
  builder.Output(builder.Name("y", builder.Relu(conv)));
  const absl::StatusOr<kiln::Plan> plan = builder.Build();
  if (!plan.ok()) return plan.status();

  // The first time this compiles; later it comes from the cache.
  const absl::StatusOr<kiln::CompiledPlan> compiled = client->Compile(*plan);
  if (!compiled.ok()) return compiled.status();

  // Parameters share one buffer, activations have one each.
  absl::StatusOr<kiln::Session> session = client->OpenSession();
  if (!session.ok()) return session.status();
  auto input = session->CreateBuffer(3 * 8 * 8 * sizeof(float));
  auto params = session->CreateBuffer((4 * 27 + 4) * sizeof(float));
  auto output = session->CreateBuffer(4 * 8 * 8 * sizeof(float));
  if (!input.ok()) return input.status();
  if (!params.ok()) return params.status();
  if (!output.ok()) return output.status();
  for (float& value : input->As<float>()) value = 1.0f;
  for (float& value : params->As<float>()) value = 0.5f;

  kiln::Bindings bindings;
  bindings.Input("x", *input)
      .Input("w", *params)
      .Input("b", *params, 4 * 27 * sizeof(float))
      .Output("y", *output);
  const auto timing = session->Execute(*compiled, bindings);
  if (!timing.ok()) return timing.status();

  // Inside the image a window sums 27 products 1 * 0.5, plus the bias 0.5.
  std::printf("y[0,0,4,4] = %g (wanted 14), in %lld us, key %.12s\n",
              output->As<float>()[4 * 8 + 4],
              static_cast<long long>(timing->execute_us),
              compiled->key.c_str());
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  kiln::ConnectOptions options = kiln::DefaultConnectOptions();
  if (argc > 1) options.socket = argv[1];
  const absl::Status status = Run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
