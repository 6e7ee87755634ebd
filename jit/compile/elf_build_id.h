#ifndef KILN_JIT_COMPILE_ELF_BUILD_ID_H_
#define KILN_JIT_COMPILE_ELF_BUILD_ID_H_

#include <optional>
#include <string>

namespace kiln {

// The GNU build-id of a 64-bit little-endian ELF file, in hexadecimal: the
// descriptor of the note NT_GNU_BUILD_ID in a PT_NOTE segment (System V ABI,
// "Program Header"; binutils, ld --build-id). Reads a few kilobytes and loads
// nothing. nullopt if the file is unreadable, no such ELF file, damaged, or
// has no build-id.
std::optional<std::string> ElfBuildId(const std::string& path);

}  // namespace kiln

#endif  // KILN_JIT_COMPILE_ELF_BUILD_ID_H_
