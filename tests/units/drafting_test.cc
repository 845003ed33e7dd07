// What drafters ask of a unit: hidden states of the layers, and blocks whose rows all see each other.
// Against the reference unit's loops, and with == between kernel sets, threads and windows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "espalier/program/validate.h"
#include "espalier/units/cpu/cpu_unit.h"
#include "espalier/units/reference/reference_unit.h"
#include "tests/units/tiny_model.h"

namespace espalier::units {
namespace {

using program::Head;

// The hybrid model with two of its values tapped, not in the order in which they are computed.
TinyModel tapped_model(const std::vector<int64_t>& windows) {
  TinyModel model = tiny_model(TinyKind::kHybrid, windows, {128});
  for (program::Program& function : model.programs.functions) {
    const auto value = [&function](const std::string& name) {
      const auto found = std::ranges::find(function.values, name, &program::Value::name);
      EXPECT_NE(found, function.values.end()) << name;
      return static_cast<program::ValueId>(found - function.values.begin());
    };
    function.outputs.push_back(value("attn.ffn_residual"));
    function.outputs.push_back(value("attn.normed"));
    EXPECT_TRUE(program::validate(function).ok());
  }
  return model;
}
constexpr size_t kTapped = 2 * kTinyHidden;

CompileOptions options_with(int threads, const std::string& kernels, int kv_bits = 16) {
  CompileOptions options;
  options.threads = threads;
  options.kernels = kernels;
  options.weights = WeightMode::kKeep;
  options.kv_bits = kv_bits;
  return options;
}

// Taps of all tokens, fed in windows.
std::vector<float> taps_of(Executable& executable, const TinyModel& model,
                           std::span<const int32_t> tokens, int64_t window, Head head) {
  Runner runner(executable, model, 128);
  std::vector<float> all;
  for (size_t done = 0; done < tokens.size();) {
    const size_t rows = std::min(tokens.size() - done, static_cast<size_t>(window));
    std::vector<float> logits(rows * kTinyVocab), taps(rows * kTapped), values(rows * kTinyVocab);
    std::vector<int32_t> indices(rows * kTinyVocab);
    runner.call(tokens.subspan(done, rows), chain_parents(rows), window, head,
                {.max_values = values, .max_indices = indices, .logits = logits, .taps = taps});
    all.insert(all.end(), taps.begin(), taps.end());
    runner.commit(rows_from(0, rows));
    done += rows;
  }
  return all;
}

TEST(Taps, AreTheValuesOfTheReferenceUnit) {
  const TinyModel model = tapped_model({32});
  const auto tokens = tiny_tokens(50);
  cpu::CpuUnit cpu;
  reference::ReferenceUnit reference;
  const auto exact = compile(reference, model, {});
  const auto fast = compile(cpu, model, options_with(2, ""));
  const auto expected = taps_of(*exact, model, tokens, 32, Head::kLogits);
  const auto actual = taps_of(*fast, model, tokens, 32, Head::kLogits);
  ASSERT_EQ(actual.size(), tokens.size() * kTapped);
  for (size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 1e-2);
}

TEST(Taps, AreTheSameBitsForEveryWindowThreadCountHeadAndKernelSet) {
  const TinyModel model = tapped_model({1, 7, 32});
  const auto tokens = tiny_tokens(40);
  cpu::CpuUnit unit;
  const auto single = compile(unit, model, options_with(1, "portable"));
  const auto expected = taps_of(*single, model, tokens, 32, Head::kLogits);
  for (const std::string& kernels : unit.kernel_names()) {
    for (const int threads : {1, 2, 3}) {
      const auto executable = compile(unit, model, options_with(threads, kernels));
      for (const int64_t window : {1, 7, 32}) {
        for (const Head head : {Head::kArgmax, Head::kLogits}) {
          ASSERT_EQ(taps_of(*executable, model, tokens, window, head), expected)
              << kernels << ", " << threads << " threads, window " << window;
        }
      }
    }
  }
}

// Logits of a block of rows that all see each other, after some committed text.
std::vector<float> block_logits(Executable& executable, const TinyModel& model, size_t committed,
                                std::span<const int32_t> block) {
  Runner runner(executable, model, 128);
  if (committed > 0) (void)runner.feed(tiny_tokens(committed, 3), 32);
  std::vector<float> logits(block.size() * kTinyVocab);
  runner.call(block, chain_parents(block.size()), 32, Head::kLogits,
              {.max_values = {}, .max_indices = {}, .logits = logits, .taps = {}}, true, true);
  EXPECT_EQ(runner.state().committed_length(), static_cast<int64_t>(committed));
  return logits;
}

class Blocks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(KvBits, Blocks, testing::Values(16, 8));

TEST_P(Blocks, SeeWhatTheReferenceUnitSees) {
  const TinyModel model = tiny_model(TinyKind::kAttention, {32}, {128});
  cpu::CpuUnit cpu;
  reference::ReferenceUnit reference;
  const auto exact = compile(reference, model, {});
  const auto fast = compile(cpu, model, options_with(2, "", GetParam()));
  for (const size_t committed : {0, 1, 17, 64}) {
    for (const size_t rows : {1, 2, 5, 9, 32}) {
      const auto block = tiny_tokens(rows, 11);
      const auto expected = block_logits(*exact, model, committed, block);
      const auto actual = block_logits(*fast, model, committed, block);
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_NEAR(actual[i], expected[i], GetParam() == 16 ? 1e-2 : 1e-1);
      }
      // The first row of a chain sees itself alone, of a block all of it.
      const auto chain = Runner(*fast, model, 128).run(block, chain_parents(rows), 32);
      if (committed == 0 && rows > 1) {
        EXPECT_FALSE(std::equal(actual.begin(), actual.begin() + kTinyVocab, chain.begin()));
      }
    }
  }
}

TEST_P(Blocks, AreTheSameBitsForEveryThreadCountAndKernelSet) {
  const TinyModel model = tiny_model(TinyKind::kAttention, {32}, {128});
  cpu::CpuUnit unit;
  const auto block = tiny_tokens(9, 11);
  const auto single = compile(unit, model, options_with(1, "portable", GetParam()));
  const auto expected = block_logits(*single, model, 33, block);
  for (const std::string& kernels : unit.kernel_names()) {
    for (const int threads : {1, 2, 3}) {
      const auto executable = compile(unit, model, options_with(threads, kernels, GetParam()));
      ASSERT_EQ(block_logits(*executable, model, 33, block), expected) << kernels << threads;
    }
  }
}

}  // namespace
}  // namespace espalier::units
