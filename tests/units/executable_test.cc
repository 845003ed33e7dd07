// The cpu unit's Executable: against the reference unit on the weights that it says it uses, and
// with == between every two ways of computing the same rows: windows, threads, kernel sets, trees,
// commits, buckets, exported states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "espalier/units/cpu/cpu_unit.h"
#include "espalier/units/reference/reference_unit.h"
#include "tests/units/tiny_model.h"

namespace espalier::units {
namespace {

using program::Head;
using testing::HasSubstr;

CompileOptions options_with(int threads, const std::string& kernels = "",
                            WeightMode weights = WeightMode::kInt8) {
  CompileOptions options;
  options.threads = threads;
  options.kernels = kernels;
  options.weights = weights;
  return options;
}

// The weights that an Executable computes with, as a checkpoint of its own: what `dump` writes.
Weights used_weights(const Executable& executable, const TinyModel& model) {
  std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>> tensors;
  for (const auto& [name, view] : model.weights.all()) {
    std::vector<float> data(static_cast<size_t>(view.element_count()));
    executable.read_weight_rows(executable.weight_index(name), 0, view.rows(), data);
    tensors[name] = {view.shape, std::move(data)};
  }
  return make_weights(tensors);
}

class CpuExecutable : public testing::TestWithParam<std::tuple<TinyKind, int>> {
 protected:
  TinyKind kind() const { return std::get<0>(GetParam()); }
  int kv_bits() const { return std::get<1>(GetParam()); }
  CompileOptions options_with(int threads, const std::string& kernels = "",
                              WeightMode weights = WeightMode::kInt8) const {
    CompileOptions options = units::options_with(threads, kernels, weights);
    options.kv_bits = kv_bits();
    return options;
  }
  cpu::CpuUnit unit_;
};

std::string param_name(const testing::TestParamInfo<std::tuple<TinyKind, int>>& info) {
  const auto [kind, kv_bits] = info.param;
  return (kind == TinyKind::kAttention ? "Attention" : "Hybrid") + std::to_string(kv_bits);
}

INSTANTIATE_TEST_SUITE_P(Models, CpuExecutable,
                         testing::Combine(testing::Values(TinyKind::kAttention, TinyKind::kHybrid),
                                          testing::Values(16, 8)),
                         param_name);

// fp16 K and V are off by up to 2^-11 of themselves and 16-bit activations by 2^-16 of their
// largest: two layers with gains near 1 leave a few thousandths on logits of size 1 to 4. Int8 K
// and V are off by 2^-8 of the largest of their head: eight times as much where a channel is the
// largest, and twice that where it is half of it.
TEST_P(CpuExecutable, AgreesWithTheReferenceUnitOnTheWeightsThatItUses) {
  const TinyModel model = tiny_model(kind(), {64}, {128});
  const auto tokens = tiny_tokens(100);
  for (const WeightMode mode : {WeightMode::kInt8, WeightMode::kInt8Group64, WeightMode::kKeep}) {
    const auto cpu = compile(unit_, model, options_with(2, "", mode));
    TinyModel dumped = model;
    dumped.weights = used_weights(*cpu, model);
    reference::ReferenceUnit reference_unit;
    const auto reference = compile(reference_unit, dumped, {});
    const auto actual = Runner(*cpu, model, 128).feed(tokens, 64);
    const auto expected = Runner(*reference, dumped, 128).feed(tokens, 64);
    float worst = 0, largest = 0;
    for (size_t i = 0; i < actual.size(); ++i) {
      worst = std::max(worst, std::fabs(actual[i] - expected[i]));
      largest = std::max(largest, std::fabs(expected[i]));
    }
    EXPECT_GT(largest, 1.0f);
    EXPECT_LT(worst, kv_bits() == 8 ? 8e-2f : 5e-3f);
  }
}

TEST_P(CpuExecutable, GivesTheSameBitsForEveryWindowThreadCountAndKernelSet) {
  const TinyModel model = tiny_model(kind(), {1, 7, 32, 64}, {128});
  const auto tokens = tiny_tokens(100);
  const auto single = compile(unit_, model, options_with(1, "portable"));
  const auto expected = Runner(*single, model, 128).feed(tokens, 64);
  for (const std::string& kernels : unit_.kernel_names()) {
    for (const int threads : {1, 2, 3}) {
      const auto executable = compile(unit_, model, options_with(threads, kernels));
      for (const int64_t window : {1, 7, 32, 64}) {
        EXPECT_EQ(Runner(*executable, model, 128).feed(tokens, window), expected)
            << kernels << ", " << threads << " threads, window " << window;
      }
    }
  }
}

TEST_P(CpuExecutable, OnePlaneAndKeptFloatsGiveTheSameBitsOnEveryKernelSet) {
  const TinyModel model = tiny_model(kind(), {1, 32}, {64});
  const auto tokens = tiny_tokens(40);
  for (const auto& [planes, mode] :
       {std::pair(1, WeightMode::kInt8), std::pair(2, WeightMode::kInt8Group64),
        std::pair(2, WeightMode::kKeep)}) {
    std::vector<float> first;
    for (const std::string& kernels : unit_.kernel_names()) {
      CompileOptions options = options_with(2, kernels, mode);
      options.activation_planes = planes;
      const auto executable = compile(unit_, model, options);
      const auto logits = Runner(*executable, model, 64).feed(tokens, 32);
      if (first.empty()) first = logits;
      EXPECT_EQ(logits, first) << kernels;
      EXPECT_EQ(Runner(*executable, model, 64).feed(tokens, 1), first) << kernels;
    }
  }
}

std::vector<int32_t> random_tree(size_t rows, std::mt19937_64& random) {
  std::vector<int32_t> parents(rows);
  for (size_t row = 0; row < rows; ++row)
    parents[row] = static_cast<int32_t>(random() % (row + 1)) - 1;
  return parents;
}

std::vector<int32_t> path_to(int32_t row, const std::vector<int32_t>& parents) {
  std::vector<int32_t> path;
  for (; row >= 0; row = parents[static_cast<size_t>(row)]) path.insert(path.begin(), row);
  return path;
}

TEST_P(CpuExecutable, ATreeRowEqualsItsPathRunAsPlainText) {
  const TinyModel model = tiny_model(kind(), {1, 64}, {640});
  const auto executable = compile(unit_, model, options_with(2));
  std::mt19937_64 random(3);
  for (const size_t committed : {0, 1, 2, 17, 40, 500}) {  // 512 positions are a chunk in 8 bits
    const auto prefix = tiny_tokens(committed, committed + 100);
    const auto tokens = tiny_tokens(30, committed);
    const auto parents = random_tree(tokens.size(), random);
    Runner tree(*executable, model, 640);
    tree.feed(prefix, 64);
    const auto logits = tree.run(tokens, parents, 64);
    for (size_t row = 0; row < tokens.size(); ++row) {
      Runner plain(*executable, model, 640);
      plain.feed(prefix, 64);
      std::vector<int32_t> path_tokens;
      for (const int32_t i : path_to(static_cast<int32_t>(row), parents)) {
        path_tokens.push_back(tokens[static_cast<size_t>(i)]);
      }
      const auto expected = plain.feed(path_tokens, 1);
      EXPECT_TRUE(std::equal(expected.end() - kTinyVocab, expected.end(),
                             logits.begin() + row * kTinyVocab))
          << "row " << row << " after " << committed;
    }
  }
}

// A thread's queries may begin at any row of a tree, and end at any.
TEST_P(CpuExecutable, ATreeGivesTheSameBitsOnAnyNumberOfThreads) {
  const TinyModel model = tiny_model(kind(), {64}, {128});
  std::mt19937_64 random(4);
  const auto prefix = tiny_tokens(20), tokens = tiny_tokens(33, 7);
  const auto parents = random_tree(tokens.size(), random);
  std::vector<float> expected;
  for (const int threads : {1, 2, 3, 4, 5, 7}) {
    const auto executable = compile(unit_, model, options_with(threads));
    Runner runner(*executable, model, 128);
    runner.feed(prefix, 64);
    const auto logits = runner.run(tokens, parents, 64);
    if (threads == 1) expected = logits;
    EXPECT_EQ(logits, expected) << threads << " threads";
  }
}

// 188 panels of the feed-forward, which threads have in shares of at least two portions: some are late, because there are
// more threads than cores, and others do their work.
TEST(WideModel, PanelsTakenFromOtherThreadsGiveTheSameBits) {
  const TinyModel model = tiny_model(TinyKind::kWide, {64}, {128});
  const auto tokens = tiny_tokens(100);
  cpu::CpuUnit unit;
  std::vector<float> expected;
  for (const int threads : {1, 2, 3, 5}) {
    const auto executable = compile(unit, model, options_with(threads));
    for (int trial = 0; trial < 5; ++trial) {
      const auto logits = Runner(*executable, model, 128).feed(tokens, 64);
      if (expected.empty()) expected = logits;
      EXPECT_EQ(logits, expected) << threads << " threads";
    }
  }
}

TEST_P(CpuExecutable, CommittingAPathOfATreeEqualsDecodingItPlainly) {
  const TinyModel model = tiny_model(kind(), {1, 64}, {128});
  const auto executable = compile(unit_, model, options_with(2));
  std::mt19937_64 random(5);
  Runner tree(*executable, model, 128), plain(*executable, model, 128);
  for (uint64_t cycle = 0; cycle < 12; ++cycle) {
    const auto tokens = tiny_tokens(24, 200 + cycle);
    const auto parents = random_tree(tokens.size(), random);
    tree.run(tokens, parents, 64);
    const auto path = path_to(static_cast<int32_t>(random() % tokens.size()), parents);
    tree.commit(path);
    std::vector<int32_t> path_tokens;
    for (const int32_t i : path) path_tokens.push_back(tokens[static_cast<size_t>(i)]);
    plain.feed(path_tokens, 1);
    ASSERT_EQ(tree.state().committed_length(), plain.state().committed_length());
  }
  const auto next = tiny_tokens(1, 9);
  EXPECT_EQ(tree.feed(next, 1), plain.feed(next, 1));
}

TEST_P(CpuExecutable, ARunThatIsNotCommittedLeavesNoTrace) {
  const TinyModel model = tiny_model(kind(), {1, 32}, {64});
  const auto executable = compile(unit_, model, options_with(2));
  const auto tokens = tiny_tokens(20);
  Runner disturbed(*executable, model, 64), plain(*executable, model, 64);
  disturbed.feed(tokens, 32);
  disturbed.run(tiny_tokens(32, 55), chain_parents(32), 32);
  disturbed.commit({});
  plain.feed(tokens, 32);
  EXPECT_EQ(disturbed.feed(tiny_tokens(3, 8), 1), plain.feed(tiny_tokens(3, 8), 1));
}

TEST_P(CpuExecutable, SequencesCanTakeTurnsAndCommitLater) {
  const TinyModel model = tiny_model(kind(), {1, 32}, {64});
  const auto executable = compile(unit_, model, options_with(2));
  const auto a = tiny_tokens(9, 1), b = tiny_tokens(13, 2);
  Runner first(*executable, model, 64), second(*executable, model, 64),
      alone(*executable, model, 64);
  first.run(a, chain_parents(a.size()), 32);
  second.run(b, chain_parents(b.size()), 32);
  first.commit(rows_from(0, a.size()));
  second.commit(rows_from(0, b.size()));
  alone.feed(a, 32);
  EXPECT_EQ(first.feed(b, 1), alone.feed(b, 1));
}

TEST_P(CpuExecutable, AStateContinuesInALargerBucketAndFromItsBytes) {
  const TinyModel model = tiny_model(kind(), {1, 32}, {32, 64, 128});
  const auto executable = compile(unit_, model, options_with(2));
  const auto tokens = tiny_tokens(90);
  const std::span<const int32_t> all(tokens);
  const auto expected = Runner(*executable, model, 128).feed(tokens, 32);

  Runner runner(*executable, model, 32);
  auto logits = runner.feed(all.subspan(0, 30), 32);
  const auto append = [&](std::span<const int32_t> part) {
    const auto more = runner.feed(part, 1);
    logits.insert(logits.end(), more.begin(), more.end());
  };
  ASSERT_TRUE(executable->resize_state(runner.state(), 64).ok());
  append(all.subspan(30, 20));
  auto imported = executable->import_state(executable->export_state(runner.state()));
  ASSERT_TRUE(imported.ok()) << imported.error().message();
  EXPECT_EQ(imported.value()->committed_length(), 50);
  EXPECT_EQ(imported.value()->kv_rows(), 64);  // the smallest bucket that holds it
  runner.replace_state(std::move(imported).value());
  ASSERT_TRUE(executable->resize_state(runner.state(), 128).ok());
  append(all.subspan(50));
  EXPECT_EQ(logits, expected);
  EXPECT_FALSE(
      executable->resize_state(runner.state(), 64).ok());  // shorter than what is committed
  EXPECT_FALSE(executable->resize_state(runner.state(), 100).ok());  // no such bucket
  EXPECT_FALSE(executable->create_state(100).ok());
}

TEST_P(CpuExecutable, TheArgmaxHeadFindsTheLowestLargestOfEverySubrange) {
  const TinyModel model = tiny_model(kind(), {32}, {64});
  const auto executable = compile(unit_, model, options_with(3));
  const auto tokens = tiny_tokens(11);
  const auto parents = chain_parents(tokens.size());
  Runner runner(*executable, model, 64);
  const auto logits = runner.run(tokens, parents, 32);
  constexpr size_t kSubranges = 5;
  std::vector<float> values(tokens.size() * kSubranges);
  std::vector<int32_t> indices(values.size());
  runner.call(tokens, parents, 32, Head::kArgmax,
              {.max_values = values, .max_indices = indices, .logits = {}});
  for (size_t row = 0; row < tokens.size(); ++row) {
    for (size_t s = 0; s < kSubranges; ++s) {
      const auto first = logits.begin() + row * kTinyVocab + s * kTinySubrange;
      const auto last = std::min(first + kTinySubrange, logits.begin() + (row + 1) * kTinyVocab);
      const auto largest = std::max_element(first, last);
      EXPECT_EQ(values[row * kSubranges + s], *largest);
      EXPECT_EQ(indices[row * kSubranges + s], largest - first);
    }
  }
}

TEST_P(CpuExecutable, WithoutSelectedRowsTheHeadIsNotTouched) {
  const TinyModel model = tiny_model(kind(), {1, 32}, {64});
  const auto executable = compile(unit_, model, options_with(2));
  const auto tokens = tiny_tokens(20);
  Runner quiet(*executable, model, 64), loud(*executable, model, 64);
  quiet.call(tokens, chain_parents(20), 32, Head::kLogits, {}, false);  // nowhere to write
  quiet.commit(rows_from(0, 20));
  loud.feed(tokens, 32);
  EXPECT_EQ(quiet.feed(tiny_tokens(1, 4), 1), loud.feed(tiny_tokens(1, 4), 1));
}

TEST_P(CpuExecutable, KeptWeightsAreReadBackExactlyAndInt8WithinHalfAStep) {
  const TinyModel model = tiny_model(kind(), {1}, {16});
  const auto kept = compile(unit_, model, options_with(1, "", WeightMode::kKeep));
  const auto int8 = compile(unit_, model, options_with(1));
  const Weights exact = used_weights(*kept, model), rounded = used_weights(*int8, model);
  for (const auto& tensor : model.weights.all()) {
    const std::string& name = tensor.first;
    const TensorView& view = tensor.second;
    const auto floats = [&name](const Weights& weights) {
      const auto bytes = weights.all().at(name).bytes;
      return std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
    };
    EXPECT_TRUE(std::ranges::equal(floats(exact), floats(model.weights))) << name;
    const auto stored = floats(model.weights), used = floats(rounded);
    for (int64_t row = 0; row < view.rows(); ++row) {
      const auto stored_row =
          stored.subspan(static_cast<size_t>(row * view.columns()), view.columns());
      float largest = 0;
      for (const float x : stored_row) largest = std::max(largest, std::fabs(x));
      for (int64_t c = 0; c < view.columns(); ++c) {
        EXPECT_NEAR(used[static_cast<size_t>(row * view.columns() + c)],
                    stored_row[static_cast<size_t>(c)], largest / 127 * 0.501f)
            << name;
      }
    }
  }
  EXPECT_EQ(kept->weight_index("no.such.tensor"), -1);
}

TEST_P(CpuExecutable, SaysWhereOpsRunAndHowMuchMemoryTheyTake) {
  const TinyModel model = tiny_model(kind(), {1, 32}, {64});
  const auto executable = compile(unit_, model, options_with(2, "portable"));
  const auto report = executable->placement_report();
  EXPECT_THAT(report, testing::Contains(AllOf(HasSubstr("attention"), HasSubstr("portable"))));
  EXPECT_THAT(report, testing::Contains(AllOf(HasSubstr("linear"), HasSubstr("int8 per channel"))));
  EXPECT_GT(executable->memory_use().weight_bytes, kTinyVocab * kTinyHidden);
  EXPECT_GT(executable->memory_use().scratch_bytes, 32 * kTinyHidden * 4);
  EXPECT_EQ(executable->capabilities().max_rows, 32);
  EXPECT_EQ(executable->capabilities().kv_write_alignment, 1);
  EXPECT_EQ(executable->capabilities().kv_element_bytes, kv_bits() / 8);
}

TEST(CpuUnit, RefusesOptionsItCannotHonourAndListsThoseItCan) {
  cpu::CpuUnit unit;
  const TinyModel model = tiny_model(TinyKind::kAttention, {1}, {16});
  const auto error_of = [&](const CompileOptions& options) {
    const auto result = unit.compile(model.programs, model.weights, "embedding", options);
    return result.ok() ? std::string() : result.error().message();
  };
  EXPECT_THAT(error_of(options_with(1, "abacus")),
              AllOf(HasSubstr("abacus"), HasSubstr("portable")));
  EXPECT_THAT(error_of(options_with(-1)), HasSubstr("-1"));
  EXPECT_THAT(error_of(options_with(100000)), HasSubstr("100000"));
  CompileOptions three_planes;
  three_planes.activation_planes = 3;
  CompileOptions four_bits;
  four_bits.kv_bits = 4;
  EXPECT_THAT(error_of(three_planes), HasSubstr("planes"));
  EXPECT_THAT(error_of(four_bits), HasSubstr("16 or 8 bits"));
  EXPECT_EQ(unit.kernel_names().back(), "portable");
}

// Every tensor that a program reads, as what it is: matrix, norm, bias, taps.
TEST(Units, RefuseWeightsThatAreNotFinite) {
  cpu::CpuUnit cpu_unit;
  reference::ReferenceUnit reference_unit;
  const TinyModel model = tiny_model(TinyKind::kHybrid, {1}, {16});
  for (const auto& [name, view] : model.weights.all()) {
    for (const float bad : {NAN, HUGE_VALF, -HUGE_VALF}) {
      auto tensors = model.weights.all();
      std::vector<float> data(static_cast<size_t>(view.element_count()), 0.5f);
      data[data.size() / 2] = bad;
      tensors[name].bytes = std::as_bytes(std::span(data));
      for (Unit* unit : {static_cast<Unit*>(&cpu_unit), static_cast<Unit*>(&reference_unit)}) {
        for (const WeightMode mode :
             {WeightMode::kInt8, WeightMode::kInt8Group64, WeightMode::kKeep}) {
          const auto compiled = unit->compile(model.programs, Weights(tensors, {}), "embedding",
                                              options_with(1, "", mode));
          ASSERT_FALSE(compiled.ok()) << unit->name() << " " << name << " " << bad;
          EXPECT_THAT(compiled.error().message(), AllOf(HasSubstr(name), HasSubstr("finite")));
        }
      }
    }
  }
}

// Attention over `first` KV heads, and then over `second` of them with the first one's output as
// its queries; on one state of 12 channels or on two with heads of 6.
program::Program two_attentions(int64_t first, int64_t second, bool shares_state) {
  constexpr int64_t kHeadDim = 6, kWidth = kTinyHidden;
  program::Builder b("two", 16, 32, 16, Head::kLogits);
  const auto x = b.input("embeddings", {16, kWidth}, Encoding::kF32);
  b.input("positions", {16, 1}, Encoding::kI32);
  const auto ancestors = b.input("ancestors", {16, 16}, Encoding::kI32);
  const auto selected = b.input("selected", {16, 1}, Encoding::kI32);
  const auto attend = [&](const std::string& name, program::ValueId q, int64_t kv_heads,
                          int64_t head_dim, program::StateId state) {
    return b.attention(name, q, ancestors, state, kWidth / head_dim, kv_heads, head_dim, 0.4);
  };
  const auto write = [&](const std::string& name, int64_t channels) {
    const auto state = b.key_value(name, channels);
    b.kv_write(b.linear(name + "k", x, b.matrix(name + "k", channels, kWidth)),
               b.linear(name + "v", x, b.matrix(name + "v", channels, kWidth)), state);
    return state;
  };
  program::ValueId mixed;
  if (shares_state) {
    const auto state = write("kv", 12);
    mixed = attend("b", attend("a", x, first, 12 / first, state), second, 12 / second, state);
  } else {
    const auto below = write("kv1", first * kHeadDim), above = write("kv2", second * kHeadDim);
    mixed = attend("b", attend("a", x, first, kHeadDim, below), second, kHeadDim, above);
  }
  b.head_logits(b.gather_rows("rows", mixed, selected), b.matrix("embedding", kTinyVocab, kWidth));
  return b.finish();
}

// Of a configuration that promises a context of a billion positions.
TEST(Units, RefuseBucketsThatNoMemoryWouldHold) {
  cpu::CpuUnit cpu_unit;
  reference::ReferenceUnit reference_unit;
  const TinyModel model = tiny_model(TinyKind::kHybrid, {1}, {int64_t{1} << 30});
  for (Unit* unit : {static_cast<Unit*>(&cpu_unit), static_cast<Unit*>(&reference_unit)}) {
    const auto compiled = unit->compile(model.programs, model.weights, "embedding", {});
    ASSERT_FALSE(compiled.ok());
    EXPECT_THAT(compiled.error().message(), HasSubstr("at most 16777216 KV positions"));
  }
}

TEST(CpuUnit, RefusesTwoAttentionsThatDivideOneStateDifferently) {
  cpu::CpuUnit unit;
  for (const auto& [first, second] : {std::pair(1, 2), std::pair(2, 1), std::pair(2, 4)}) {
    const program::Program program = two_attentions(first, second, true);
    const auto compiled = unit.compile({{program}}, random_weights(program, 3), "embedding", {});
    ASSERT_FALSE(compiled.ok()) << first << " " << second;
    EXPECT_THAT(compiled.error().message(), HasSubstr("divide state 0 differently"));
  }
  const program::Program same = two_attentions(2, 2, true);
  EXPECT_TRUE(unit.compile({{same}}, random_weights(same, 3), "embedding", {}).ok());
}

TEST(CpuUnit, RefusesHeadsThatEightBitsCannotHold) {
  program::Builder b("wide", 1, 16, 1, Head::kLogits);
  const auto x = b.input("embeddings", {1, kTinyHidden}, Encoding::kF32);
  const auto ancestors = b.input("ancestors", {1, 1}, Encoding::kI32);
  const auto selected = b.input("selected", {1, 1}, Encoding::kI32);
  const auto to_wide = [&](const std::string& name) {
    return b.linear(name, x, b.matrix(name, 520, kTinyHidden));
  };
  const auto state = b.key_value("kv", 520);
  b.kv_write(to_wide("k"), to_wide("v"), state);
  const auto y = b.attention("a", to_wide("q"), ancestors, state, 1, 1, 520, 0.1);
  b.head_logits(b.gather_rows("rows", y, selected), b.matrix("embedding", kTinyVocab, 520));
  const program::Program program = b.finish();
  cpu::CpuUnit unit;
  CompileOptions options;
  const Weights weights = random_weights(program, 3);
  EXPECT_TRUE(unit.compile({{program}}, weights, "embedding", options).ok());
  options.kv_bits = 8;
  const auto compiled = unit.compile({{program}}, weights, "embedding", options);
  ASSERT_FALSE(compiled.ok());
  EXPECT_THAT(compiled.error().message(), AllOf(HasSubstr("512"), HasSubstr("520")));
}

// Threads take queries in the order of KV heads, so another number of those is another division.
TEST(CpuUnit, AttentionOfAnAttentionWaitsWhereTheKvHeadsDiffer) {
  cpu::CpuUnit unit;
  for (const auto& [first, second] : {std::pair(2, 3), std::pair(12, 1), std::pair(4, 4)}) {
    TinyModel model;
    model.programs.functions.push_back(two_attentions(first, second, false));
    model.weights = random_weights(model.programs.functions[0], 3);
    const auto tokens = tiny_tokens(16);
    const auto single = compile(unit, model, options_with(1));
    const auto expected = Runner(*single, model, 32).run(tokens, chain_parents(16), 16);
    const auto many = compile(unit, model, options_with(5));
    for (int round = 0; round < 20; ++round) {
      ASSERT_EQ(Runner(*many, model, 32).run(tokens, chain_parents(16), 16), expected)
          << first << " and " << second << " KV heads, round " << round;
    }
  }
}

TEST(CpuUnitDeathTest, AStateOfAnotherExecutableIsABug) {
  cpu::CpuUnit unit;
  const TinyModel model = tiny_model(TinyKind::kHybrid, {1}, {16});
  const auto one = compile(unit, model, options_with(1)),
             other = compile(unit, model, options_with(1));
  const auto state = one->create_state(16).value();
  EXPECT_DEATH((void)other->export_state(*state), "CHECK");
  EXPECT_DEATH(other->commit(*state, {}), "CHECK");
}

TEST(CpuUnit, RefusesProgramsAndWeightsThatDoNotFit) {
  cpu::CpuUnit unit;
  const TinyModel model = tiny_model(TinyKind::kHybrid, {1}, {16});
  EXPECT_FALSE(unit.compile({}, model.weights, "embedding", {}).ok());
  const auto missing = unit.compile(model.programs, model.weights, "no.such.tensor", {});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message(), HasSubstr("no.such.tensor"));

  auto tensors = model.weights.all();
  tensors.erase("conv.taps");
  const auto incomplete = unit.compile(model.programs, Weights(tensors, {}), "embedding", {});
  ASSERT_FALSE(incomplete.ok());
  EXPECT_THAT(incomplete.error().message(), HasSubstr("conv.taps"));

  TinyModel tall = tiny_model(TinyKind::kAttention, {16}, {16});
  for (program::Program& function : tall.programs.functions) function.rows = 1500;
  const auto too_tall = unit.compile(tall.programs, tall.weights, "embedding", {});
  ASSERT_FALSE(too_tall.ok());
  EXPECT_THAT(too_tall.error().message(), HasSubstr("1500"));
}

}  // namespace
}  // namespace espalier::units
