# Every library from outside, with the folder that includes it; found on the system, nothing is downloaded at configure
# time. Debian packages and Homebrew formulas: README.md, "Dependencies".
find_package(Threads REQUIRED)
if(CMAKE_CROSSCOMPILING)
  include(CrossDependencies)
  return()
endif()
find_package(fmt 9 REQUIRED)                       # base
find_package(nlohmann_json 3.10 REQUIRED)          # base/json.h
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)    # text
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc) # text
if(ESPALIER_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
