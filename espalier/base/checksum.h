// Checksum of bytes that this process or an earlier one has written: it notices damage, it is no
// defence against an attacker. XXH64 with seed 0 (Yann Collet's specification), because it is short
// to write down and reads a core's share of the memory bandwidth. Thread-safe, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace espalier {

uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace espalier
