# Toolchain: Linux on AArch64, built with clang 19 and run by QEMU's user mode. A static program needs nothing of the
# other machine there.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_C_COMPILER clang-19)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
# Without SME, whose products of bytes QEMU computes wrongly up to version 7.2, that of Debian 12.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu max,sme=off)
