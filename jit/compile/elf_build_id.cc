#include "jit/compile/elf_build_id.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <vector>

#include "fmt/format.h"

namespace kiln {
namespace {

// More headers or longer notes than these are damage.
constexpr size_t kMaxProgramHeaders = 4096;
constexpr uint64_t kMaxNoteBytes = uint64_t{1} << 20;

bool ReadAt(std::ifstream& file, uint64_t offset, void* bytes, size_t size) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(static_cast<char*>(bytes), static_cast<std::streamsize>(size));
  return file.good();
}

bool IsElf64(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_ident[EI_DATA] == ELFDATA2LSB &&
         header.e_phentsize == sizeof(Elf64_Phdr) &&
         header.e_phnum <= kMaxProgramHeaders;
}

uint64_t Align4(uint64_t size) { return (size + 3) / 4 * 4; }

// The build-id among the notes of one segment.
std::optional<std::string> BuildIdIn(const std::vector<char>& notes) {
  uint64_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof(note));
    const uint64_t name = at + sizeof(note);
    const uint64_t descriptor = name + Align4(note.n_namesz);
    if (descriptor + note.n_descsz > notes.size()) return std::nullopt;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + name, "GNU", 4) == 0) {
      std::string id;
      for (uint64_t i = 0; i < note.n_descsz; ++i) {
        id +=
            fmt::format("{:02x}", static_cast<uint8_t>(notes[descriptor + i]));
      }
      return id;
    }
    at = descriptor + Align4(note.n_descsz);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> ElfBuildId(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!file || !ReadAt(file, 0, &header, sizeof(header))) return std::nullopt;
  if (!IsElf64(header)) return std::nullopt;

  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!ReadAt(file, header.e_phoff + i * sizeof(segment), &segment,
                sizeof(segment))) {
      return std::nullopt;
    }
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) {
      continue;
    }
    std::vector<char> notes(segment.p_filesz);
    if (!ReadAt(file, segment.p_offset, notes.data(), notes.size())) {
      return std::nullopt;
    }
    if (std::optional<std::string> id = BuildIdIn(notes)) return id;
  }
  return std::nullopt;
}

}  // namespace kiln
