#include "jit/compile/toolchain.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "jit/compile/elf_build_id.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The smallest ELF file with a build-id.
std::string FakeElf(const std::string& id) {
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_phoff = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment = {};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof(header) + sizeof(segment);
  segment.p_filesz = sizeof(Elf64_Nhdr) + 4 + id.size();
  const Elf64_Nhdr note = {4, static_cast<Elf64_Word>(id.size()),
                           NT_GNU_BUILD_ID};
  std::string bytes;
  bytes.append(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
  bytes.append(reinterpret_cast<const char*>(&note), sizeof(note));
  return bytes + std::string("GNU\0", 4) + id;
}

class ToolchainTest : public ::testing::Test {
 protected:
  ToolchainTest() {
    std::string folder = (fs::temp_directory_path() / "kiln-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) std::abort();
    root_ = folder;
  }
  ~ToolchainTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& bytes) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << bytes;
  }

  void Install(const std::string& folder, const std::string& major,
               const std::string& version, const std::string& id) {
    Write(folder + "/libnvrtc.so." + major, FakeElf("L" + id + "  "));
    Write(folder + "/libnvrtc-builtins.so." + version,
          FakeElf("B" + id + "  "));
  }

  std::string Path(const std::string& path) const {
    return (root_ / path).string();
  }

  fs::path root_;
};

TEST_F(ToolchainTest, FindsTheFilesOfAFolder) {
  Install("cuda/lib64", "13", "13.0", "1");
  const auto found = FindToolchain(Path("cuda/lib64"), "");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->library_path, Path("cuda/lib64/libnvrtc.so.13"));
  EXPECT_EQ(found->builtins_path, Path("cuda/lib64/libnvrtc-builtins.so.13.0"));
  EXPECT_EQ(found->id, "4c312020+42312020");
  EXPECT_EQ(found->version, "13.0");
}

TEST_F(ToolchainTest, KnowsTheLayoutsOfToolkitsAndWheels) {
  for (const char* folder :
       {"lib64", "lib", "nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) {
    const std::string root = std::string("root-") + std::to_string(*folder);
    Install(root + "/" + folder, "12", "12.9", "1");
    EXPECT_TRUE(FindToolchain(Path(root), "").ok()) << folder;
  }
}

TEST_F(ToolchainTest, TakesTheNewestAsNumbersNotAsText) {
  Install("a", "9", "9.2", "1");
  Install("b", "13", "13.0", "2");
  Install("c", "12", "12.9", "3");
  const auto found = FindToolchainIn({Path("a"), Path("b"), Path("c")});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->version, "13.0");
}

TEST_F(ToolchainTest, IgnoresAlternativeAndUnversionedLibraries) {
  Install("lib", "13", "13.0", "1");
  Write("lib/libnvrtc.alt.so.14", FakeElf("x"));
  Write("lib/libnvrtc.so", FakeElf("x"));
  const auto found = FindToolchain(Path("lib"), "");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->library_path, Path("lib/libnvrtc.so.13"));
}

TEST_F(ToolchainTest, APathMayNameTheLibrary) {
  Install("lib", "13", "13.0", "1");
  const auto found = FindToolchain(Path("lib/libnvrtc.so.13"), "");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->id, "4c312020+42312020");
}

TEST_F(ToolchainTest, APathWithoutNvrtcIsInvalid) {
  Write("empty/readme", "");
  EXPECT_EQ(FindToolchain(Path("empty"), "").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FindToolchain(Path("missing"), "").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ToolchainTest, SaysWhereItLooked) {
  const auto found = FindToolchainIn({Path("nowhere"), Path("never")});
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr(Path("nowhere")));
}

// A library without its builtins loads, then fails at every compile.
TEST_F(ToolchainTest, ALibraryWithoutBuiltinsDoesNotCount) {
  Write("lib/libnvrtc.so.13", FakeElf("1"));
  EXPECT_EQ(FindToolchainIn({Path("lib")}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ToolchainTest, ExtraFolderIsSearched) {
  Install("wheels/nvidia/cuda_nvrtc/lib", "99", "99.0", "1");
  const auto found = FindToolchain("", Path("wheels"));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->version, "99.0");
}

TEST_F(ToolchainTest, CudaRootsAreSearched) {
  Install("cuda/lib64", "98", "98.0", "1");
  const auto found = FindToolchain("", "", {"", Path("cuda")});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->version, "98.0");
}

TEST_F(ToolchainTest, DamagedElfFilesHaveNoBuildId) {
  const std::string whole = FakeElf("12345678");
  Write("whole", whole);
  EXPECT_EQ(ElfBuildId(Path("whole")), "3132333435363738");
  for (size_t size = 0; size < whole.size(); ++size) {
    Write("cut", whole.substr(0, size));
    EXPECT_EQ(ElfBuildId(Path("cut")), std::nullopt) << size;
  }
  Write("text", std::string(4096, 'x'));
  EXPECT_EQ(ElfBuildId(Path("text")), std::nullopt);
  EXPECT_EQ(ElfBuildId(Path("missing")), std::nullopt);
}

}  // namespace
}  // namespace kiln
