# Writes OUTPUT, a C++ file that defines kiln::CompilerDigest(): the SHA-256
# of the relative path and SHA-256 of every file that can alter generated
# code. Lines that are comments do not count, nor how lines are broken and
# indented. Reproducible: sorted by path, nothing of the machine in it.
#   cmake -DROOT=... -DOUTPUT=... -P compiler_digest.cmake
set(patterns)
foreach(folder IN ITEMS kernel_sources jit/plan jit/compile)
  foreach(extension IN ITEMS h cc cu cuh cmake)
    list(APPEND patterns ${ROOT}/${folder}/*.${extension})
  endforeach()
endforeach()
file(GLOB sources RELATIVE ${ROOT} ${patterns})
list(SORT sources)

set(listing "")
foreach(source IN LISTS sources)
  file(READ ${ROOT}/${source} text)
  string(REGEX REPLACE "\n[ \t]*//[^\n]*" "" text "\n${text}")
  string(REGEX REPLACE "[ \t\r\n]+" " " text "${text}")
  string(SHA256 digest "${text}")
  string(APPEND listing "${digest}  ${source}\n")
endforeach()
string(SHA256 digest "${listing}")

file(WRITE ${OUTPUT} "#include \"jit/compile/compile_request.h\"

namespace kiln {

std::string_view CompilerDigest() {
  return \"${digest}\";
}

}  // namespace kiln
")
