# Writes OUTPUT, a C++ file that holds the text of every kernel source in
# SOURCE_DIR. Reproducible: sorted by name, no paths, no dates.
#   cmake -DSOURCE_DIR=... -DOUTPUT=... -P embed.cmake
file(GLOB sources RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/*.cu ${SOURCE_DIR}/*.cuh)
list(SORT sources)

set(table "#include \"kernel_sources/kernel_sources.h\"\n\n")
string(APPEND table "namespace kiln {\nnamespace {\n\n")
string(APPEND table "constexpr KernelSource kSources[] = {\n")
foreach(source IN LISTS sources)
  file(READ ${SOURCE_DIR}/${source} text)
  string(APPEND table "{\"${source}\", R\"kiln(${text})kiln\"},\n")
endforeach()
string(APPEND table "};\n\n}  // namespace\n\n")
string(APPEND table "std::span<const KernelSource> KernelSources() ")
string(APPEND table "{ return kSources; }\n\n}  // namespace kiln\n")
file(WRITE ${OUTPUT} "${table}")
