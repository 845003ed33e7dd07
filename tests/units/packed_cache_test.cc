// The folder of packed files: shared by processes, limited, and no reason for a load to fail.
#include "espalier/units/cpu/packed_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>

#include "espalier/base/mapped_file.h"
#include "espalier/units/cpu/cpu_unit.h"
#include "tests/support/temporary_directory.h"
#include "tests/units/packed_content.h"
#include "tests/units/tiny_model.h"

namespace espalier::units::cpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

PackedWeights obtain(const PackedContent& content, const PackedCache& cache) {
  ThreadPool pool(2);
  auto weights = obtain_packed_weights(content, cache, pool);
  EXPECT_TRUE(weights.ok());
  EXPECT_TRUE(holds_content(weights->payload, content));
  return std::move(weights).value();
}

// Whether `check` holds in a child, which may limit itself, or end in another way.
bool holds_in_child(const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(PackedCache, WritesOnceAndReadsAfterwards) {
  const TemporaryDirectory directory;
  const PackedContent content = numbered_content("key", 20, 640);
  const PackedCache cache = {.folder = directory / "made/here"};
  const PackedWeights first = obtain(content, cache);
  EXPECT_EQ(first.report.origin, PackedOrigin::kWritten);
  EXPECT_EQ(first.report.path, packed_file_path(cache.folder, "key"));
  EXPECT_THAT(first.report.notes, IsEmpty());
  const PackedWeights second = obtain(content, cache);
  EXPECT_EQ(second.report.origin, PackedOrigin::kCache);
  EXPECT_THAT(second.report.notes, IsEmpty());
  EXPECT_EQ(obtain(content, {}).report.origin, PackedOrigin::kMemory);
  EXPECT_EQ(obtain(content, {}).report.path, "");
}

TEST(PackedCache, ReplacesADamagedOrForeignFileWithANote) {
  const TemporaryDirectory directory;
  const PackedContent content = numbered_content("key", 20, 640);
  const PackedCache cache = {.folder = directory.path()};
  obtain(content, cache);
  const std::string name = packed_file_path("", "key");
  const std::string path = directory / name;
  const std::string good = read_text_file(path).value();
  std::string flipped = good;
  flipped[5000] = static_cast<char>(~flipped[5000]);
  for (const std::string& bad : {flipped, good.substr(0, 5000), std::string("a letter"),
                                 std::string(), std::string(good.size(), '\0')}) {
    directory.write(name, bad);
    const PackedWeights weights = obtain(content, cache);
    EXPECT_EQ(weights.report.origin, PackedOrigin::kWritten);
    EXPECT_THAT(weights.report.notes, ElementsAre(HasSubstr("does not hold the packed weights")));
    EXPECT_EQ(read_text_file(path).value(), good);
    EXPECT_EQ(obtain(content, cache).report.origin, PackedOrigin::kCache);
  }
}

TEST(PackedCache, PacksIntoMemoryWhereTheFolderCannotBeUsed) {
  const TemporaryDirectory directory;
  const PackedContent content = numbered_content("key", 20, 640);
  const PackedWeights weights =
      obtain(content, {.folder = directory.write("file", "").append("/in")});
  EXPECT_EQ(weights.report.origin, PackedOrigin::kMemory);
  EXPECT_EQ(weights.report.path, "");
  EXPECT_THAT(weights.report.notes, ElementsAre(HasSubstr("packed weights are not kept")));
}

TEST(PackedCache, ReadsFromAReadOnlyFolderAndDoesNotWriteThere) {
  const TemporaryDirectory directory;
  const PackedContent kept = numbered_content("kept", 20, 640);
  const PackedContent other = numbered_content("other", 20, 640);
  const PackedCache cache = {.folder = directory.path()};
  obtain(kept, cache);
  ASSERT_EQ(::chmod(directory.path().c_str(), 0555), 0);
  EXPECT_TRUE(holds_in_child([&] {
    // Root may write anywhere; 65534 is nobody.
    if (::geteuid() == 0 && ::setuid(65534) != 0) return false;
    const PackedReport here = obtain(kept, cache).report;
    const PackedReport absent = obtain(other, cache).report;
    return here.origin == PackedOrigin::kCache && here.notes.empty() &&
           absent.origin == PackedOrigin::kMemory && absent.notes.size() == 1;
  }));
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(PackedCache, PacksIntoMemoryWhereTheFileCannotBeWrittenWhole) {
  const TemporaryDirectory directory;
  const PackedContent content = numbered_content("key", 20, 640);
  for (const rlim_t limit : {0, 1000, 4096, 5000, 16895, 17000}) {
    EXPECT_TRUE(holds_in_child([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit both{limit, limit};
      if (::setrlimit(RLIMIT_FSIZE, &both) != 0) return false;
      const PackedReport report = obtain(content, {.folder = directory.path()}).report;
      return report.origin == PackedOrigin::kMemory && report.notes.size() == 1;
    })) << limit;
    EXPECT_EQ(directory.file_count(), 0u);
  }
}

#ifdef __linux__
TEST(PackedCache, TakesAtMostHalfOfTheFreeSpace) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path();
  if (!holds_in_child([] { return ::unshare(CLONE_NEWNS) == 0; })) {
    GTEST_SKIP() << "this user may not mount a small file system";
  }
  EXPECT_TRUE(holds_in_child([&] {
    const bool mounted = ::unshare(CLONE_NEWNS) == 0 &&
                         ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         ::mount("", folder.c_str(), "tmpfs", 0, "size=64k") == 0;
    const PackedReport large =
        obtain(numbered_content("large", 50, 640), {.folder = folder}).report;
    const PackedReport small =
        obtain(numbered_content("small", 10, 640), {.folder = folder}).report;
    return mounted && large.origin == PackedOrigin::kMemory && large.notes.size() == 1 &&
           large.notes[0].find("too little free space") != std::string::npos &&
           small.origin == PackedOrigin::kWritten;
  }));
}
#endif

TEST(PackedCache, RemovesWhatWasNotUsedForTheLongestTime) {
  const TemporaryDirectory directory;
  const auto content = [](const char* key) { return numbered_content(key, 20, 640); };
  const PackedCache cache = {.folder = directory.path(),
                             .limit_bytes = 3 * packed_file_bytes(content("a"))};
  const auto age = [&](const char* key, int hours) {
    std::filesystem::last_write_time(
        packed_file_path(cache.folder, key),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
  };
  const auto is_there = [&](const char* key) {
    return std::filesystem::exists(packed_file_path(cache.folder, key));
  };
  for (const char* name : {"notes.txt", "archive.packed", "backup.packed.20240101"}) {
    directory.write(name, std::string(100'000, 'x'));  // of somebody else, and the oldest
    std::filesystem::last_write_time(
        directory / name, std::filesystem::file_time_type::clock::now() - std::chrono::hours(9));
  }
  const PackedWeights mapped = obtain(content("a"), cache);
  for (const char* key : {"b", "c"}) obtain(content(key), cache);
  age("a", 3);
  age("b", 2);
  age("c", 1);
  obtain(content("b"), cache);  // used again
  obtain(content("d"), cache);
  EXPECT_FALSE(is_there("a"));
  obtain(content("e"), cache);
  EXPECT_FALSE(is_there("c"));
  for (const char* key : {"b", "d", "e"}) EXPECT_TRUE(is_there(key)) << key;
  EXPECT_EQ(directory.file_count(), 6u);
  EXPECT_TRUE(holds_content(mapped.payload, content("a")));  // lives on without its name
}

TEST(PackedCache, DoesNotKeepWhatTheFolderMayNotHold) {
  const TemporaryDirectory directory;
  const PackedContent content = numbered_content("key", 20, 640);
  obtain(numbered_content("other", 1, 64), {.folder = directory.path()});
  const PackedCache cache = {.folder = directory.path(),
                             .limit_bytes = packed_file_bytes(content) - 1};
  const PackedReport report = obtain(content, cache).report;
  EXPECT_EQ(report.origin, PackedOrigin::kMemory);
  EXPECT_THAT(report.notes, ElementsAre(HasSubstr("do not fit")));
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(PackedCache, SurvivesAProcessThatIsKilledWhileItWrites) {
  const TemporaryDirectory directory;
  const PackedContent content = numbered_content("key", 20, 640);
  const PackedCache cache = {.folder = directory.path()};
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    PackedContent stuck = content;
    stuck.pack = [&](size_t block, std::byte* out) {
      if (block == 10 && ::write(ends[1], "x", 1) == 1) ::pause();
      return content.pack(block, out);
    };
    ThreadPool pool(1);
    ::_exit(obtain_packed_weights(stuck, cache, pool).ok() ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  // It lives: its file stays, and is in nobody's way.
  EXPECT_EQ(obtain(content, cache).report.origin, PackedOrigin::kWritten);
  EXPECT_EQ(directory.file_count(), 2u);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(obtain(content, cache).report.origin, PackedOrigin::kCache);
  EXPECT_EQ(obtain(numbered_content("next", 1, 64), cache).report.origin, PackedOrigin::kWritten);
  EXPECT_EQ(directory.file_count(), 2u);
}

TEST(PackedCache, IsSharedByProcessesThatRace) {
  const TemporaryDirectory directory;
  const PackedCache cache = {.folder = directory.path()};
  constexpr int kProcesses = 6;
  const auto race = [&] {
    for (int round = 0; round < 30; ++round) {
      const PackedContent content = numbered_content(std::to_string(round), 30, 640);
      ThreadPool pool(1);
      const auto weights = obtain_packed_weights(content, cache, pool);
      if (!weights.ok() || !weights->report.notes.empty()) return false;
      if (!holds_content(weights->payload, content)) return false;
    }
    return true;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(race() ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(directory.file_count(), 30u);
}

// The tiny model's weights as a file, since only weights of files are kept.
Weights weights_in_file(const Weights& weights, const std::string& path) {
  std::string bytes;
  std::map<std::string, size_t> places;
  for (const auto& [name, view] : weights.all()) {
    places[name] = bytes.size();
    bytes.append(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
  }
  std::ofstream(path, std::ios::binary) << bytes;
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path).value();
  std::map<std::string, TensorView> views = weights.all();
  for (auto& [name, view] : views) {
    view.bytes = file->bytes().subspan(places[name], view.bytes.size());
  }
  return Weights::of_files(std::move(views), {file});
}

TEST(PackedCache, ChangesNoBitOfAModel) {
  const TemporaryDirectory directory;
  CpuUnit unit;
  TinyModel model = tiny_model(TinyKind::kHybrid, {8}, {64});
  const auto tokens = tiny_tokens(30);
  for (const WeightMode mode : {WeightMode::kInt8, WeightMode::kInt8Group64, WeightMode::kKeep}) {
    const auto logits_of = [&](const std::string& folder, PackedOrigin origin) {
      const auto executable =
          compile(unit, model, {.threads = 2, .weights = mode, .packed_cache = {.folder = folder}});
      EXPECT_EQ(executable->packed_report().origin, origin);
      return Runner(*executable, model, 64).feed(tokens, 8);
    };
    const std::vector<float> expected = logits_of("", PackedOrigin::kMemory);
    logits_of(directory / "cache", PackedOrigin::kMemory);  // there is no file behind them
    const Weights in_memory = model.weights;
    model.weights = weights_in_file(in_memory, directory / "weights");
    EXPECT_EQ(logits_of(directory / "cache", PackedOrigin::kWritten), expected);
    EXPECT_EQ(logits_of(directory / "cache", PackedOrigin::kCache), expected);
    // Written anew, it is another file even where each byte is the same.
    std::filesystem::remove(directory / "weights");
    model.weights = weights_in_file(in_memory, directory / "weights");
    EXPECT_EQ(logits_of(directory / "cache", PackedOrigin::kWritten), expected);
    model.weights = in_memory;
  }
}

}  // namespace
}  // namespace espalier::units::cpu
