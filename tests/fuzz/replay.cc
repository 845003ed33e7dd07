// Runs a fuzz entry without libFuzzer: every file of the given folders, and 32 truncations of each.
// A crash, a sanitizer report or an empty corpus is the failure; with the compiler's own sanitizers
// this is the regression test.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kTruncations = 32;

void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> whole{std::istreambuf_iterator<char>(file), {}};
  for (size_t part = 1; part <= kTruncations; ++part) {
    // A copy of the exact size, so that the address sanitizer sees a read past the end.
    const std::vector<uint8_t> input(whole.begin(),
                                     whole.begin() + whole.size() * part / kTruncations);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      replay(entry.path());
      ++files;
    }
  }
  std::printf("%d files replayed\n", files);
  return files > 0 ? 0 : 1;
}
