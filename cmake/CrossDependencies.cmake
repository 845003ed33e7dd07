# Libraries from outside for a build for another machine, where this machine's are no use: headers alone, reached through
# links because the rest of /usr/include is of this machine, and GoogleTest from Debian's source package. PCRE2 and
# utf8proc are not there. For macOS, cmake/macos lists the functions of them that we call, so that any other symbol that
# is missing is an error of the linker; for Linux, what needs them can be compiled, not linked.
set(headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(name fmt nlohmann pcre2.h utf8proc.h)
  file(CREATE_LINK /usr/include/${name} ${headers}/${name} SYMBOLIC)
endforeach()
foreach(target fmt::fmt nlohmann_json::nlohmann_json PkgConfig::PCRE2 PkgConfig::UTF8PROC)
  add_library(${target} INTERFACE IMPORTED)
  target_include_directories(${target} INTERFACE ${headers})
endforeach()
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
if(APPLE)
  target_link_libraries(PkgConfig::PCRE2 INTERFACE ${CMAKE_CURRENT_LIST_DIR}/macos/libpcre2-8.tbd)
  target_link_libraries(PkgConfig::UTF8PROC INTERFACE ${CMAKE_CURRENT_LIST_DIR}/macos/libutf8proc.tbd)
endif()
if(ESPALIER_TESTS)
  add_subdirectory(/usr/src/googletest ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
endif()
