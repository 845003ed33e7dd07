#include "espalier/measure/read_loops.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace espalier::measure {
namespace {

// `lines` lines whose first words are 1, 2, 3, ...; all else is noise that no loop may count.
std::vector<std::byte> numbered_lines(size_t lines) {
  std::vector<std::byte> bytes(lines * 64, std::byte{0xa5});
  for (size_t line = 0; line < lines; ++line) {
    const uint64_t number = line + 1;
    std::memcpy(bytes.data() + line * 64, &number, sizeof(number));
  }
  return bytes;
}

// The rate is only true where no line is left out or read twice: below, at and past the block of 512
// lines that the streams walk.
TEST(ReadLoops, EveryLineIsReadOnce) {
  for (const size_t lines : {size_t{1}, size_t{511}, size_t{512}, size_t{1029}}) {
    const std::vector<std::byte> bytes = numbered_lines(lines);
    for (const ReadLoop& loop : all_read_loops()) {
      EXPECT_EQ(loop.run(bytes.data(), static_cast<int64_t>(bytes.size())), lines * (lines + 1) / 2)
          << loop.name << ", " << lines << " lines";
    }
  }
}

}  // namespace
}  // namespace espalier::measure
