// CpuState: commits along paths, growth, truncation, and bytes that go out and come back, or are
// refused.
#include "espalier/units/cpu/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace espalier::units::cpu {
namespace {

using program::StateKind;
using testing::HasSubstr;

StateShape kv_shape() {
  return {.kind = StateKind::kKeyValue, .channels = 24, .kv_heads = 2, .head_dim = 12, .rows = 0};
}
StateShape conv_shape() {
  return {.kind = StateKind::kShortConv, .channels = 20, .kv_heads = 0, .head_dim = 0, .rows = 2};
}

std::shared_ptr<const StateLayout> layout_of(std::vector<StateShape> states) {
  return std::make_shared<const StateLayout>(
      StateLayout{.states = std::move(states), .buckets = {32, 64, 128}, .window_rows = 16});
}

// A row whose every channel tells which row it is.
uint16_t mark(int64_t row, int64_t channel, bool is_value) {
  return static_cast<uint16_t>(row * 64 + channel * 2 + (is_value ? 1 : 0));
}

// Stages `parents.size()` rows numbered from `first`.
void stage(CpuState& state, const std::vector<int32_t>& parents, int64_t first) {
  state.stage_rows(parents);
  for (size_t id = 0; id < state.layout().states.size(); ++id) {
    const StateShape& shape = state.layout().states[id];
    for (int64_t row = 0; row < static_cast<int64_t>(parents.size()); ++row) {
      if (shape.kind == StateKind::kShortConv) {
        for (int64_t c = 0; c < shape.channels; ++c)
          state.staged_conv_row(id, row)[c] = mark(first + row, c, false);
        continue;
      }
      std::vector<uint16_t> k, v;
      for (int64_t c = 0; c < shape.channels; ++c) {
        k.push_back(mark(first + row, c, false));
        v.push_back(mark(first + row, c, true));
      }
      state.staged_kv(id).write_position(row, k.data(), v.data());
    }
  }
}

// Rows that a KV state holds, by their marks; fails where a row is not whole.
std::vector<int64_t> rows_of(const CpuState& state, size_t id) {
  std::vector<int64_t> rows;
  std::vector<uint16_t> k(24), v(24);
  for (int64_t position = 0; position < state.committed_length(); ++position) {
    state.committed_kv(id).read_position(position, k.data(), v.data());
    rows.push_back(k[0] / 64);
    for (int64_t c = 0; c < 24; ++c) {
      EXPECT_EQ(k[static_cast<size_t>(c)], mark(rows.back(), c, false));
      EXPECT_EQ(v[static_cast<size_t>(c)], mark(rows.back(), c, true));
    }
  }
  return rows;
}

std::vector<int64_t> conv_rows_of(const CpuState& state, size_t id) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < 2; ++row)
    rows.push_back(static_cast<int64_t>(state.conv_row(id, row)[0]) / 64);
  return rows;
}

TEST(CpuState, CommitsTheRowsOfAPathInOrder) {
  const auto state = CpuState::create(layout_of({kv_shape(), conv_shape()}), 32).value();
  stage(*state, {-1, 0, 0, 1, 2, 4}, 100);
  state->commit(std::vector<int32_t>{0, 2, 4, 5});
  EXPECT_THAT(rows_of(*state, 0), testing::ElementsAre(100, 102, 104, 105));
  EXPECT_THAT(conv_rows_of(*state, 1), testing::ElementsAre(104, 105));
  stage(*state, {-1, -1}, 200);
  state->commit(std::vector<int32_t>{1});
  EXPECT_THAT(rows_of(*state, 0), testing::ElementsAre(100, 102, 104, 105, 201));
  EXPECT_THAT(conv_rows_of(*state, 1), testing::ElementsAre(105, 201));
  stage(*state, {-1}, 300);
  state->commit({});
  EXPECT_EQ(state->committed_length(), 5);
  EXPECT_THAT(conv_rows_of(*state, 1), testing::ElementsAre(105, 201));
}

TEST(CpuStateDeathTest, ACommitThatIsNoPathOrComesTwiceOrDoesNotFitIsABug) {
  const auto state = CpuState::create(layout_of({kv_shape()}), 32).value();
  stage(*state, {-1, 0, 0}, 0);
  EXPECT_DEATH(state->commit(std::vector<int32_t>{0, 1, 2}), "CHECK");
  EXPECT_DEATH(state->commit(std::vector<int32_t>{1}), "CHECK");
  EXPECT_DEATH(state->commit(std::vector<int32_t>{3}), "CHECK");
  EXPECT_DEATH(state->commit(std::vector<int32_t>{-1}), "CHECK");
  state->commit(std::vector<int32_t>{0, 1});
  EXPECT_DEATH(state->commit(std::vector<int32_t>{0}), "CHECK");
}

TEST(CpuState, KeepsItsContentAndItsStagedRowsWhenItGrowsOrShrinks) {
  const auto state = CpuState::create(layout_of({kv_shape(), conv_shape()}), 32).value();
  stage(*state, {-1, 0, 1}, 10);
  state->commit(std::vector<int32_t>{0, 1, 2});
  stage(*state, {-1, 0}, 20);
  ASSERT_TRUE(state->resize(128).ok());
  state->commit(std::vector<int32_t>{0, 1});
  ASSERT_TRUE(state->resize(32).ok());
  EXPECT_EQ(state->kv_rows(), 32);
  EXPECT_THAT(rows_of(*state, 0), testing::ElementsAre(10, 11, 12, 20, 21));
  EXPECT_THAT(conv_rows_of(*state, 1), testing::ElementsAre(20, 21));
  const auto wrong = state->resize(33);
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().message(), AllOf(HasSubstr("32, 64, 128"), HasSubstr("33")));
}

TEST(CpuState, TruncatesToAnyLengthWithoutConvolutionsAndToNothingWithThem) {
  const auto plain = CpuState::create(layout_of({kv_shape()}), 32).value();
  const auto hybrid = CpuState::create(layout_of({kv_shape(), conv_shape()}), 32).value();
  for (CpuState* state : {plain.get(), hybrid.get()}) {
    stage(*state, {-1, 0, 1, 2}, 10);
    state->commit(std::vector<int32_t>{0, 1, 2, 3});
    EXPECT_FALSE(state->truncate(5).ok());
    EXPECT_FALSE(state->truncate(-1).ok());
  }
  ASSERT_TRUE(plain->truncate(2).ok());
  EXPECT_THAT(rows_of(*plain, 0), testing::ElementsAre(10, 11));
  EXPECT_FALSE(hybrid->truncate(2).ok());
  ASSERT_TRUE(hybrid->truncate(0).ok());
  EXPECT_EQ(hybrid->committed_length(), 0);
  EXPECT_THAT(conv_rows_of(*hybrid, 1), testing::ElementsAre(0, 0));
}

TEST(CpuState, ComesBackFromItsBytesInTheSmallestBucket) {
  const auto layout = layout_of({kv_shape(), conv_shape()});
  const auto state = CpuState::create(layout, 128).value();
  for (int64_t i = 0; i < 11; ++i) {
    stage(*state, {-1, 0, 1}, 10 * i);
    state->commit(std::vector<int32_t>{0, 1, 2});
  }
  const auto copy = CpuState::from_bytes(layout, state->to_bytes());
  ASSERT_TRUE(copy.ok()) << copy.error().message();
  EXPECT_EQ(copy.value()->kv_rows(), 64);
  EXPECT_EQ(rows_of(*copy.value(), 0), rows_of(*state, 0));
  EXPECT_EQ(conv_rows_of(*copy.value(), 1), conv_rows_of(*state, 1));
  EXPECT_EQ(copy.value()->to_bytes(), state->to_bytes());
}

// Random positions of two heads through a path, a larger bucket and bytes: V beyond a chunk, too.
TEST(CpuState, KeepsPositionsOfEightBitsThroughCommitsGrowthAndBytes) {
  const auto layout = std::make_shared<const StateLayout>(
      StateLayout{.states = {kv_shape()}, .buckets = {544, 1056}, .kv_bits = 8, .window_rows = 16});
  const auto state = CpuState::create(layout, 544).value();
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> keys, values;
  const auto random_row = [&] {
    std::vector<float> row(24);
    for (float& x : row) x = normal(random);
    return row;
  };
  while (state->committed_length() < 530) {
    state->stage_rows(std::vector<int32_t>{-1, -1, 1});
    for (int64_t row = 0; row < 3; ++row) {
      const auto k = random_row(), v = random_row();
      state->staged_kv8(0).write_position(row, k.data(), v.data());
      if (row == 0) continue;  // not on the path
      keys.push_back(k);
      values.push_back(v);
    }
    state->commit(std::vector<int32_t>{1, 2});
  }
  ASSERT_TRUE(state->resize(1056).ok());
  const auto copy = CpuState::from_bytes(layout, state->to_bytes()).value();
  EXPECT_EQ(copy->kv_rows(), 544);
  EXPECT_EQ(copy->to_bytes(), state->to_bytes());
  std::vector<std::byte> bytes(Int8KeyValueRows::position_bytes(kv_shape()));
  for (int64_t position = 0; position < 530; ++position) {
    copy->committed_kv8(0).read_position(position, bytes);
    const std::byte* at = bytes.data();
    for (int64_t half = 0; half < 4; ++half) {  // K and V of the first head, then of the second
      const auto& row = (half % 2 == 0 ? keys : values)[static_cast<size_t>(position)];
      float scale;
      std::memcpy(&scale, at + 12, sizeof(scale));
      for (int64_t d = 0; d < 12; ++d) {
        EXPECT_NEAR(static_cast<float>(static_cast<int8_t>(at[d])) * scale,
                    row[static_cast<size_t>(half / 2 * 12 + d)], scale * 0.501f);
      }
      at += 12 + sizeof(float);
    }
  }
}

// Every byte of the header is checked, every length but the right one is refused, and the layouts
// of other models are.
TEST(CpuState, RefusesBytesThatAreDamagedTruncatedOrOfAnotherModel) {
  const auto layout = layout_of({kv_shape(), conv_shape()});
  const auto state = CpuState::create(layout, 32).value();
  stage(*state, {-1, 0, 1}, 10);
  state->commit(std::vector<int32_t>{0, 1, 2});
  const std::vector<std::byte> good = state->to_bytes();
  const size_t header_bytes = good.size() - (3 * 2 * 24 * 2 + 2 * 20 * 4);
  EXPECT_EQ(header_bytes, 24u + 2 * 40);
  for (size_t i = 0; i < header_bytes; ++i) {
    for (const int flip : {1, 0x80, 0xFF}) {
      std::vector<std::byte> bad = good;
      bad[i] ^= static_cast<std::byte>(flip);
      const auto result = CpuState::from_bytes(layout, bad);
      ASSERT_FALSE(result.ok()) << "byte " << i;
      EXPECT_FALSE(result.error().expected.empty());
    }
  }
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(CpuState::from_bytes(layout, std::span(good).first(size)).ok()) << size;
  }
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(CpuState::from_bytes(layout, longer).ok());
  EXPECT_FALSE(CpuState::from_bytes(layout_of({kv_shape()}), good).ok());
  EXPECT_FALSE(CpuState::from_bytes(layout_of({conv_shape(), kv_shape()}), good).ok());

  std::mt19937_64 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::byte> noise(random() % 400);
    for (std::byte& b : noise) b = static_cast<std::byte>(random());
    EXPECT_FALSE(CpuState::from_bytes(layout, noise).ok());
  }
}

}  // namespace
}  // namespace espalier::units::cpu
