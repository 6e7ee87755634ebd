#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/daemon.h"

namespace kiln::e2e {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Replaces what differs between runs.
json Normalised(json value) {
  static const std::set<std::string> kVolatile = {"key",
                                                  "pid",
                                                  "uptime_ms",
                                                  "cache_dir",
                                                  "directory",
                                                  "plan",
                                                  "version",
                                                  "nvrtc_version",
                                                  "toolchain",
                                                  "compiler",
                                                  "key_text",
                                                  "size_bytes",
                                                  "last_used_unix_ms",
                                                  "nearest_key",
                                                  "artifact_bytes",
                                                  "registers",
                                                  "memory_bytes",
                                                  "name",
                                                  "workers",
                                                  "files",
                                                  "symbol",
                                                  "message",
                                                  "canonical"};
  if (value.is_object()) {
    for (auto& item : value.items()) {
      if (item.key() == "timing_us" || item.key() == "execute_us" ||
          kVolatile.contains(item.key())) {
        item.value() = "<" + item.key() + ">";
      } else {
        item.value() = Normalised(item.value());
      }
    }
  } else if (value.is_array()) {
    for (json& element : value) element = Normalised(element);
  }
  return value;
}

class CommandTest : public testing::Test {
 protected:
  CommandTest() : plan_(daemon_.folder() / "plan.kiln") {
    WriteWhole(plan_, SmallPlanText(1));
  }

  json Json(std::vector<std::string> arguments, int status = 0) {
    arguments.push_back("--json");
    const CommandResult result = daemon_.Kiln(arguments);
    EXPECT_EQ(result.status, status) << result.err;
    const json parsed = json::parse(result.out, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << result.out;
    return Normalised(parsed);
  }

  void Write(const std::string& name, const std::string& text) {
    WriteWhole(daemon_.folder() / name, text);
  }
  std::string Path(const std::string& name) { return daemon_.folder() / name; }

  Daemon daemon_;
  const std::string plan_;
};

TEST_F(CommandTest, CompilePrintsItsDocument) {
  EXPECT_EQ(Json({"compile", plan_, "--target", "cpu"}),
            json::parse(R"({"schema": "kiln.compile/1", "plan": "<plan>",
              "results": [{"target": "cpu", "key": "<key>",
                "source": "compiled", "timing_us": "<timing_us>",
                "artifact_bytes": "<artifact_bytes>", "kernels": []}]})"));
}

TEST_F(CommandTest, RunPrintsItsDocument) {
  const json document = Json({"run", plan_, "--verify", "--repeat", "3"});
  EXPECT_EQ(document["schema"], "kiln.run/1");
  EXPECT_EQ(document["verified"], true);
  EXPECT_EQ(document["repeat"], 3);
  EXPECT_EQ(document["outputs"][0]["desc"], "f32[64]");
}

// A convolution of 16 bits rounds its input for all that read it; one that no
// output needs is not computed, and must not round for the verdict alone.
TEST_F(CommandTest, WhatNoOutputNeedsDoesNotCountInTheVerdict) {
  Write("dead.kiln",
        "input x: f16[1,2,8,8]\nparam w: f16[2,2,3,3]\ne = exp(x)\n"
        "c = conv2d(e, w)\ny = sigmoid(e)\noutput y: f32\n");
  EXPECT_EQ(Json({"run", Path("dead.kiln"), "--verify"})["verified"], true);
}

TEST_F(CommandTest, EveryDocumentNamesItsSchema) {
  const std::map<std::string, std::vector<std::string>> commands = {
      {"kiln.info/1", {"info"}},
      {"kiln.doctor/1", {"doctor"}},
      {"kiln.validate/1", {"validate", plan_}},
      {"kiln.explain/1", {"explain", plan_}},
      {"kiln.prewarm/1", {"prewarm", plan_, "--target", "cpu"}},
      {"kiln.cache.stats/1", {"cache", "stats"}},
      {"kiln.cache.ls/1", {"cache", "ls"}},
      {"kiln.cache.verify/1", {"cache", "verify"}},
      {"kiln.cache.gc/1", {"cache", "gc"}},
      {"kiln.cache.purge/1", {"cache", "purge", "--yes"}}};
  for (const auto& command : commands) {
    EXPECT_EQ(Json(command.second)["schema"], command.first);
  }
}

TEST_F(CommandTest, ErrorsAreDocumentsToo) {
  Write("bad.kiln", "input x: f32[4]\ny = relu(z)\noutput y\n");
  const json document =
      Json({"compile", Path("bad.kiln"), "--target", "cpu"}, 5);
  EXPECT_EQ(document["schema"], "kiln.error/1");
  EXPECT_EQ(document["code"], "INVALID_ARGUMENT");
  // Of the daemon's errors one finds the line in its log.
  const json refused = Json({"cache", "show", "zzz"}, 2);
  EXPECT_THAT(
      daemon_.log(),
      HasSubstr("request=" + refused.value("request_id", "none") + " Show"));
}

// Needs neither a GPU nor a compile.
TEST_F(CommandTest, ExplainPrintsTheScheduleWithItsCandidates) {
  Write("norm.kiln",
        "input x: f32[112,64,512,512]\n"
        "y = group_norm(x, num_groups=8)\noutput y\n");
  const json document = Json({"explain", Path("norm.kiln"), "--target",
                              "h100-sxm,sm_80/100,cpu", "--schedule"});
  const json& h100 = document["results"][0]["schedule"];
  EXPECT_EQ(h100["device"], "h100-sxm");
  const json& kernel = h100["variants"][0]["kernels"][0];
  EXPECT_THAT(kernel["computes"][1].get<std::string>(),
              HasSubstr("group_norm"));
  EXPECT_GT(kernel["predicted_us"], 1000);
  EXPECT_EQ(kernel["candidates"][0]["chosen"], true);
  EXPECT_EQ(kernel["candidates"][0]["kind"], "whole grid");
  EXPECT_EQ(kernel["candidates"][2]["fits"], false);
  EXPECT_FALSE(document["results"][1]["schedule"].contains("device"));
  EXPECT_EQ(document["results"][2]["schedule"]["variants"], json::array());
  EXPECT_EQ(daemon_.Stats().compiles(), 0);

  const std::string text = daemon_
                               .Kiln({"explain", Path("norm.kiln"), "--target",
                                      "h100-sxm,sm_80/100,cpu", "--schedule"})
                               .out;
  EXPECT_THAT(text, HasSubstr("-> whole grid"));
  EXPECT_THAT(text,
              HasSubstr("- one block                  the row does not fit"));
  EXPECT_THAT(text, HasSubstr("where that does not fit: asks nothing"));
  EXPECT_THAT(text, HasSubstr("no known device has this target"));
  EXPECT_THAT(text, HasSubstr("the cpu evaluates the plan op by op"));
}

// Prevents that two keys of the same kernels are taken for different ones.
TEST_F(CommandTest, ExplainNamesChoicesThatNoKernelHas) {
  Write("softmax.kiln",
        "input x: f32[4096,1024]\ny = softmax(x, dim=1)\noutput y\n");
  const auto idle = [&](const std::string& variant) {
    return Json({"explain", Path("softmax.kiln"), "--target", "a100",
                 "--variant", variant})["results"][0]
        .value("idle_choices", json::array());
  };
  EXPECT_EQ(idle("conv1"), json::array({"conv1"}));
  EXPECT_EQ(idle("conv1+rows1"), json::array({"conv1"}));
  EXPECT_EQ(idle("rows1"), json::array());
  EXPECT_EQ(idle("rows9"), json::array());
  EXPECT_EQ(idle("auto"), json::array());
  EXPECT_EQ(idle("eager"), json::array());
  EXPECT_THAT(
      daemon_.Kiln({"explain", plan_, "--target", "a100", "--variant", "rows2"})
          .out,
      HasSubstr("rows2 changes nothing: no kernel of the plan has such"));
}

// Prevents scripts from taking a cut document for a whole one.
TEST_F(CommandTest, FullStandardOutputIsAFailure) {
  const CommandResult result =
      RunCommand({"/bin/sh", "-c", "exec \"$0\" \"$@\" > /dev/full",
                  Program("kiln"), "info", "--socket", Path("kilnd.sock")});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("Standard output cannot be written"));
}

// Prevents programs that read --json from getting nothing to read.
TEST_F(CommandTest, UsageErrorsAreDocumentsToo) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"compile", plan_}, {"frob"}, {"run"}}) {
    const json document = Json(arguments, 2);
    EXPECT_EQ(document["schema"], "kiln.error/1");
    EXPECT_THAT(document["hint"].get<std::string>(), HasSubstr("--help"));
  }
}

TEST_F(CommandTest, ReadsPlansFromStandardInputAndProtoJson) {
  EXPECT_EQ(daemon_.Kiln({"compile", "-", "--target", "cpu"}, plan_).status, 0);
  Write("plan.json", R"({
      "inputs": [{"name": "x", "desc": {"dtype": "F32", "dims": [64]}}],
      "ops": [{"kind": 50, "operands": [{"value": 0}]}],
      "outputs": [{"value": 1}]})");
  const CommandResult result = daemon_.Kiln({"validate", Path("plan.json")});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("relu"));
}

TEST_F(CommandTest, RunReadsAndWritesNpy) {
  const CommandResult first = daemon_.Kiln(
      {"run", plan_, "--seed", "3", "--output", "y=" + Path("y.npy")});
  ASSERT_EQ(first.status, 0) << first.err;
  const std::string y = ReadWhole(Path("y.npy"));
  EXPECT_EQ(y.substr(1, 5), "NUMPY");
  EXPECT_EQ(y.size() % 64, 0u);
  // What was an output serves as an input: relu(x * 1.5) of x >= 0.
  const CommandResult second =
      daemon_.Kiln({"run", plan_, "--verify", "--input", "x=" + Path("y.npy"),
                    "--output", "y=" + Path("z.npy")});
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_NE(ReadWhole(Path("z.npy")), y);
}

TEST_F(CommandTest, CompileWritesArtifactCubinAndSource) {
  const CommandResult result =
      daemon_.Kiln({"compile", plan_, "--target", "a100", "-o", Path("out")});
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* name : {"plan.sm_80-108.artifact", "plan.sm_80-108.0.cubin",
                           "plan.sm_80-108.0.cu"}) {
    EXPECT_TRUE(std::filesystem::exists(daemon_.folder() / "out" / name))
        << name;
  }
  EXPECT_THAT(
      daemon_.Kiln({"compile", plan_, "--target", "a100", "--show"}).out,
      HasSubstr("extern \"C\""));
}

TEST_F(CommandTest, PrewarmGoesPastFailuresAndResumes) {
  Write("fleet.jsonl",
        R"({"plan": "plan.kiln", "targets": ["cpu", "a100"]})"
        "\n"
        R"({"plan": "input x: f32[4]\ny = nosuchop(x)\noutput y\n",)"
        R"( "targets": ["cpu"]})"
        "\n"
        R"({"plan": "plan.kiln", "targets": ["cpu"], "grade": "tf32"})"
        "\nnot json\n");
  const std::vector<std::string> command = {"prewarm", Path("fleet.jsonl"),
                                            "--resume"};
  const json first = Json(command, 7);
  EXPECT_EQ(first["total"], 5);
  EXPECT_EQ(first["compiled"], 3);
  EXPECT_EQ(first["failed"], 2);
  EXPECT_EQ(first["failures"].size(), 2u);
  const json second = Json(command, 7);
  EXPECT_EQ(second["skipped"], 3);
  EXPECT_EQ(second["failed"], 2);
  // Another cache, or another build of Kiln, holds nothing of what is listed.
  EXPECT_EQ(daemon_.Kiln({"cache", "purge", "--yes"}).status, 0);
  EXPECT_EQ(Json(command, 7)["compiled"], 3);
}

// Prevents that what one host was asked for is not what another prepares.
TEST_F(CommandTest, VariantsAreRecordedAndPrewarmed) {
  const TempDir folder;
  const std::string manifest = folder / "record.jsonl";
  std::vector<std::string> compile = {"compile", plan_, "--target", "a100"};
  {
    const Daemon recorder({"--record", manifest});
    EXPECT_EQ(recorder.Kiln(compile).status, 0);
    compile.insert(compile.end(), {"--variant", "rows1"});
    EXPECT_EQ(recorder.Kiln(compile).status, 0);
    EXPECT_EQ(recorder.Kiln(compile).status, 0);
  }
  EXPECT_EQ(Json({"prewarm", manifest})["compiled"], 2);
  compile.push_back("--hit-only");
  EXPECT_EQ(daemon_.Kiln(compile).status, 0);
  Write("typo.jsonl", R"({"plan": "plan.kiln", "varaint": "rows1"})");
  EXPECT_THAT(
      daemon_.Kiln({"prewarm", Path("typo.jsonl"), "--target", "cpu"}).err,
      HasSubstr("\"varaint\" is no field of a manifest"));
}

TEST_F(CommandTest, SaysWhatIsWrongInWordsAndStatus) {
  Write("bad.kiln", "nonsense\n");
  Write("bad.json", "{\"inputs\": [\n");
  Write("tera.kiln", "input x: f32[400000,500000]\ny = relu(x)\noutput y\n");
  const std::string nowhere = Path("nowhere.sock");
  struct Case {
    std::vector<std::string> arguments;
    int status;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{"validate", Path("missing.kiln")}, 1, "cannot be read"},
      {{"compile", plan_, "--target", "cpu", "--hit-only"}, 1, "not in the"},
      {{"compile", plan_}, 2, "--target"},
      {{"compile", plan_, "--target", "h1000"}, 2, "h100-sxm"},
      {{"nosuchcommand"}, 2, "got nosuchcommand, commands: serve"},
      {{"cache", "frob"}, 2, "got frob, commands: stats"},
      {{"cache", "ls", "--limit", "-3"}, 2, "-3 not in range 1 to"},
      {{"cache", "gc", "--limit", "-1"}, 2, "\"-1\" is not a size"},
      {{"cache", "gc", "--limit", "5XB"}, 2, "\"5XB\" is not a size"},
      {{"run", plan_, "--seed", "-4"}, 2, "-4 is negative"},
      {{"run", plan_, "--repeat", "0"}, 2, "0 not in range 1 to 1000000"},
      {{"run", plan_, "--output", "q=q.npy"}, 2, "got q, allowed: y"},
      {{"run", Path("tera.kiln")}, 1, "do not fit in memory"},
      {{"prewarm", plan_, "--target", "h1000"}, 2, "h100-sxm"},
      {{"validate", "/dev/zero"}, 5, "too long for a plan"},
      {{"validate", Path("")}, 1, "Is a directory"},
      {{"validate", Path("bad.json")}, 5, "JSON of a kiln.v1.Plan"},
      {{"cache", "purge"}, 2, "--yes"},
      {{"info", "--socket", nowhere}, 3, nowhere},
      {{"validate", Path("bad.kiln")}, 5, "bad.kiln"},
      {{"compile", plan_, "--target", "sm_13/1"}, 2, "sm_75 and later"},
      {{"compile", plan_, "--target", "sm_199/1"}, 2, "sm_80, "},
      {{"prewarm", plan_, Path("bad.kiln"), "--target", "cpu"}, 7, "bad.kiln"},
  };
  for (const Case& item : cases) {
    const CommandResult result = daemon_.Kiln(item.arguments);
    EXPECT_EQ(result.status, item.status)
        << testing::PrintToString(item.arguments) << result.out << result.err;
    EXPECT_THAT(result.err, HasSubstr(item.message));
  }
}

TEST_F(CommandTest, FindsDamageInTheCache) {
  ASSERT_EQ(daemon_.Kiln({"compile", plan_, "--target", "cpu"}).status, 0);
  const auto cache = daemon_.folder() / "cache";
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(cache)) {
    if (!file.is_regular_file() || file.file_size() < 100) continue;
    std::string bytes = ReadWhole(file.path());
    bytes[bytes.size() / 2] ^= 1;
    WriteWhole(file.path(), bytes);
  }
  const CommandResult result = daemon_.Kiln({"cache", "verify"});
  EXPECT_EQ(result.status, 8) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("damaged"));
}

TEST_F(CommandTest, ColorIsHeeded) {
  EXPECT_THAT(daemon_.Kiln({"doctor", "--color", "always"}).out,
              HasSubstr("\033["));
  EXPECT_THAT(daemon_.Kiln({"doctor"}).out, Not(HasSubstr("\033[")));
}

TEST_F(CommandTest, EveryCommandHasHelpWithExamples) {
  for (const char* command : {"serve", "compile", "run", "validate", "explain",
                              "tune", "prewarm", "cache", "info", "doctor"}) {
    const CommandResult result = daemon_.Kiln({command, "--help"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, HasSubstr("Examples:")) << command;
    EXPECT_THAT(result.out, HasSubstr("--timeout among them: kiln --help"))
        << command;
  }
}

}  // namespace
}  // namespace kiln::e2e
