// A decode step of a whole session allocates nothing: not the engine, the unit, the sampler or the
// session.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/engine/golden_models.h"

namespace {
std::atomic<int64_t> allocations{0};
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++allocations;
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<std::size_t>(alignment), size) == 0) return memory;
  throw std::bad_alloc();
}
// The algorithms of the standard library ask in this way; a sanitizer's own would not fit our delete.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace espalier::engine {
namespace {

constexpr const char* kNano = ESPALIER_SOURCE_DIR "/models/nano";
constexpr const char* kNanoDrafter = ESPALIER_SOURCE_DIR "/models/nano-drafter";

std::vector<std::pair<GenerateOptions, decode::SpeculationMode>> with_every_mode(
    std::span<const GenerateOptions> choices) {
  using enum decode::SpeculationMode;
  std::vector<std::pair<GenerateOptions, decode::SpeculationMode>> pairs;
  for (const GenerateOptions& options : choices) {
    for (const auto mode : {kOff, kChain, kTree, kAuto}) pairs.emplace_back(options, mode);
  }
  return pairs;
}

TEST(Session, DoesNotAllocateBetweenTheTokensOfAnAnswer) {
  const GenerateOptions choices[] = {
      {.max_tokens = 100, .ignore_end_tokens = true},
      {.sampling = {.temperature = 1, .top_k = 20, .top_p = 0.9, .min_p = 0.01, .seed = 1},
       .max_tokens = 100,
       .ignore_end_tokens = true},
      {.sampling = {.temperature = 1,
                    .repetition_penalty = 1.1,
                    .presence_penalty = 0.1,
                    .frequency_penalty = 0.1,
                    .logit_bias = {{5, 1.0F}}},
       .max_tokens = 100,
       .logprobs = 5,
       .ignore_end_tokens = true},
  };
  const auto prompt = some_text(70);
  for (const std::string name : {"llama_biases", "lfm2_mixed", "nano"}) {
    const auto engine =
        name == "nano"
            ? Engine::load(kNano, {.compile = {.threads = 2}, .drafter = kNanoDrafter}).value()
            : load_golden(name, {.compile = {.threads = 2}});
    const auto session = make_session(*engine);
    for (const auto& [options, mode] : with_every_mode(choices)) {
      int64_t first = -1, last = 0, tokens = 0;
      GenerateOptions chosen = options;
      chosen.speculation = {.mode = mode};
      const auto answer = session->generate(prompt, chosen, [&](const AnswerToken&) {
        if (first < 0) first = allocations;
        last = allocations;
        ++tokens;
        return true;
      });
      ASSERT_TRUE(answer.ok());
      EXPECT_EQ(tokens, 100);
      EXPECT_EQ(last, first) << name;
    }
  }
}

TEST(AllocationCount, SeesAllocationsOnEveryThread) {
  const int64_t before = allocations;
  const auto probe = std::make_unique<std::vector<int>>(100);
  std::thread([] { std::vector<char>(10); }).join();
  EXPECT_GE(allocations, before + 4);
  EXPECT_EQ(probe->size(), 100U);
}

}  // namespace
}  // namespace espalier::engine
