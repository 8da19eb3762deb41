# SPDX-License-Identifier: Apache-2.0
# Script (cmake -P): writes OUTPUT, a C++ file that holds the files of FOLDER for cli/new_kernel.hpp.

file(GLOB FILES RELATIVE "${FOLDER}" "${FOLDER}/*")
set(ROWS "")
foreach(FILE IN LISTS FILES)
  file(READ "${FOLDER}/${FILE}" TEXT)
  if(TEXT MATCHES "\\)gemmery_template\"")
    message(FATAL_ERROR "${FILE}: holds the delimiter )gemmery_template\" of the embedding")
  endif()
  string(APPEND ROWS "    {\"${FILE}\", R\"gemmery_template(${TEXT})gemmery_template\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "// Written by cli/write_templates.cmake from cli/new_kernel. Not to be edited.

#include \"cli/new_kernel.hpp\"

namespace gemmery::cli {

std::span<const TemplateFile> kernel_template() {
  static constexpr TemplateFile files[] = {
${ROWS}  };
  return files;
}

}  // namespace gemmery::cli
")
