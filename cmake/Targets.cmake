# espalier_library(<folder> SOURCES ... DEPS ... [LINK ...])  library of one folder, espalier_<folder>
# espalier_test(<name> SOURCES ... DEPS ...)                  one GoogleTest binary, one ctest entry a test case

function(espalier_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LINK" ${ARGN})
  string(REPLACE "/" "_" target espalier_${folder})
  add_library(${target} STATIC ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND espalier_)
  target_link_libraries(${target} PUBLIC espalier_options ${ARG_DEPS} ${ARG_LINK})
endfunction()

function(espalier_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND espalier_)
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main GTest::gmock)
  target_compile_definitions(${name} PRIVATE ESPALIER_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             ESPALIER_BINARY_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
endfunction()
