# Toolchain: macOS on Apple silicon, compiled and linked on Linux by Zig's clang, which brings Apple's interfaces. Nothing
# can be run.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
file(GLOB zig_folder ${CMAKE_CURRENT_LIST_DIR}/../.venv/lib/python3*/site-packages/ziglang)
find_program(ZIG zig HINTS ${zig_folder} REQUIRED)
set(CMAKE_CXX_COMPILER ${ZIG} c++ -target aarch64-macos)
foreach(tool ar ranlib)  # CMake wants a program alone
  string(TOUPPER ${tool} name)
  set(CMAKE_${name} ${CMAKE_BINARY_DIR}/zig-${tool})
  file(WRITE ${CMAKE_${name}} "#!/bin/sh\nexec ${ZIG} ${tool} \"$@\"\n")
  file(CHMOD ${CMAKE_${name}} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(CMAKE_INSTALL_NAME_TOOL true)  # asked for, never needed
