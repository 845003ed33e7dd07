# How every file is compiled: the interface target espalier_options, which espalier_library() links.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(espalier_options INTERFACE)
target_include_directories(espalier_options INTERFACE ${PROJECT_SOURCE_DIR})
# -ffp-contract=off: results are defined to the bit, fused multiply-add is written where it is meant.
target_compile_options(espalier_options INTERFACE -Wall -Wextra -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(espalier_options INTERFACE -Wno-unknown-warning-option)  # those of g++
endif()
# Warnings are errors for the compilers of CI, g++ 12 and clang 14. A newer one may warn of more, which must keep nobody
# from building; and sanitized code makes g++ see faults where there are none, as its manual says.
if((CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND NOT ESPALIER_SANITIZE) OR
   (CMAKE_CXX_COMPILER_ID STREQUAL Clang AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15))
  target_compile_options(espalier_options INTERFACE -Werror)
endif()
# The baseline of x86, on others the compiler's own; faster kernels are compiled for their own instruction set, file by
# file.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(espalier_options INTERFACE -march=x86-64-v3)
endif()
if(ESPALIER_SANITIZE)
  target_compile_options(espalier_options INTERFACE -fsanitize=${ESPALIER_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(espalier_options INTERFACE -fsanitize=${ESPALIER_SANITIZE})
endif()
if(ESPALIER_FUZZ)
  target_compile_options(espalier_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
