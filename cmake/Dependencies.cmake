# Every library from outside, found on the system; nothing is downloaded at configure time.
# Debian 12 packages and Homebrew formulas: README.md, "Dependencies".
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)                       # base
find_package(nlohmann_json 3.10 REQUIRED)          # base/json.h
find_package(CLI11 2.1 REQUIRED)                   # cli
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)    # text
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc) # text
if(ESPALIER_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
if(ESPALIER_BENCH)
  find_package(benchmark QUIET)
endif()
