#include "server/health_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kiln {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A connection's health service that notes what it is told.
class NotingService : public grpc::HealthCheckServiceInterface {
 public:
  void SetServingStatus(const std::string& name, bool serving) override {
    told_.emplace_back(name, serving);
  }
  void SetServingStatus(bool) override {}

  std::vector<std::pair<std::string, bool>> Take() {
    return std::exchange(told_, {});
  }

 private:
  std::vector<std::pair<std::string, bool>> told_;
};

TEST(HealthBoardTest, TellsConnectionsWhatIsKnownAndEachChange) {
  HealthBoard board;
  board.Set("cpu", true);
  board.Set("cuda:0", false);
  NotingService service;
  board.Add(&service);
  EXPECT_THAT(service.Take(),
              ElementsAre(Pair("kiln.v1.Executor/cpu", true),
                          Pair("kiln.v1.Executor/cuda:0", false)));
  board.Set("cuda:0", true);
  EXPECT_THAT(service.Take(),
              ElementsAre(Pair("kiln.v1.Executor/cuda:0", true)));
}

// Prevents a call into the health service of a connection that is gone.
TEST(HealthBoardTest, TellsNothingAfterRemove) {
  HealthBoard board;
  NotingService service;
  board.Add(&service);
  board.Remove(&service);
  board.Set("cpu", false);
  EXPECT_THAT(service.Take(), IsEmpty());
}

}  // namespace
}  // namespace kiln
