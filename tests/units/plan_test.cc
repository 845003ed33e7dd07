// The algorithms of a plan: where barriers stand, and where buffers lie in the arena.
#include "espalier/units/cpu/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace espalier::units::cpu {
namespace {

const Split kRows{.by = Split::By::kRows, .rows = RowSet::kWindow, .count = 0};
const Split kPanels{.by = Split::By::kPanels, .rows = RowSet::kWindow, .count = 4};

Access reads(int64_t first, bool own_share) {
  return {.first = first, .last = first + 10, .stride = 5, .writes = false, .own_share = own_share};
}
Access writes(int64_t first) {
  return {.first = first, .last = first + 10, .stride = 5, .writes = true, .own_share = true};
}

// For each step, whether threads meet in front of it.
std::vector<bool> barriers(std::vector<Step> steps) {
  std::vector<bool> result;
  bool is_first = true;
  for (const Interval& interval : make_intervals(std::move(steps))) {
    bool barrier = !is_first;
    for (const Phase& phase : interval) {
      for (size_t i = 0; i < phase.runs.size(); ++i)
        result.push_back(std::exchange(barrier, false));
    }
    is_first = false;
  }
  return result;
}

Step step(const Split& split, std::vector<Access> accesses) {
  return {.split = split, .accesses = std::move(accesses), .run = {}};
}

using testing::ElementsAre;

TEST(Barriers, AThreadMayGoOnWithItsOwnShare) {
  EXPECT_THAT(barriers({step(kRows, {writes(0)}), step(kRows, {reads(0, true), writes(10)}),
                        step(kRows, {reads(10, true), writes(0)})}),
              ElementsAre(false, false, false));
}

TEST(Barriers, StandBeforeAReaderOfOtherSharesAndBeforeAnotherSplit) {
  EXPECT_THAT(barriers({step(kRows, {writes(0)}), step(kRows, {reads(0, false)})}),
              ElementsAre(false, true));
  EXPECT_THAT(barriers({step(kRows, {writes(0)}), step(kPanels, {reads(0, true)})}),
              ElementsAre(false, true));
}

TEST(Barriers, StandBeforeAWriterOfWhatAnotherThreadMayStillRead) {
  EXPECT_THAT(barriers({step(kPanels, {reads(0, false)}), step(kPanels, {writes(0)})}),
              ElementsAre(false, true));
}

TEST(Barriers, StandWhereABufferIsReusedWithAnotherPlaceOrStride) {
  Access narrow = writes(0);
  narrow.stride = 3;
  EXPECT_THAT(barriers({step(kRows, {writes(0)}), step(kRows, {writes(5)})}),
              ElementsAre(false, true));
  EXPECT_THAT(barriers({step(kRows, {writes(0)}), step(kRows, {narrow})}),
              ElementsAre(false, true));
}

TEST(Barriers, QueriesOfOtherKvHeadsAreAnotherDivision) {
  const auto queries = [](int64_t kv_heads) {
    return Split{Split::By::kQueries, RowSet::kWindow, 12, kv_heads};
  };
  EXPECT_THAT(barriers({step(queries(2), {writes(0)}), step(queries(2), {reads(0, true)})}),
              ElementsAre(false, false));
  EXPECT_THAT(barriers({step(queries(2), {writes(0)}), step(queries(3), {reads(0, true)})}),
              ElementsAre(false, true));
}

// Other threads may have taken some of them, and what is taken in one phase says nothing of the next.
TEST(Barriers, StandBetweenTwoPhasesOnTheSamePanels) {
  const Split other{.by = Split::By::kPanels, .rows = RowSet::kWindow, .count = 5};
  EXPECT_THAT(barriers({step(kPanels, {writes(0)}), step(kPanels, {reads(0, true)})}),
              ElementsAre(false, false));
  EXPECT_THAT(barriers({step(kPanels, {writes(0)}), step(other, {writes(20)}),
                        step(kPanels, {reads(0, true)})}),
              ElementsAre(false, false, true));
  EXPECT_THAT(barriers({step(kRows, {writes(0)}), step(other, {writes(20)}),
                        step(kRows, {reads(0, true)})}),
              ElementsAre(false, false, false));
}

TEST(Barriers, ReadersDoNotDisturbEachOtherAndOneBarrierServesAllThatFollow) {
  EXPECT_THAT(barriers({step(kRows, {writes(0)}), step(kPanels, {reads(0, false), writes(20)}),
                        step(kPanels, {reads(0, false), writes(40)}),
                        step(kPanels, {reads(20, true), reads(40, true)})}),
              ElementsAre(false, true, false, false));
}

// With few rows each thread quantises all of them for itself, and multiplies its own panels by what it has.
TEST(Barriers, EveryThreadWaitsForAllSharesOnceAndForNobodyAfterwards) {
  const Split every{.by = Split::By::kEveryThread, .rows = RowSet::kWindow, .count = 0};
  EXPECT_THAT(barriers({step(kPanels, {writes(0)}), step(every, {reads(0, false)}),
                        step(kPanels, {writes(20)}), step(kPanels, {reads(20, true), writes(0)})}),
              ElementsAre(false, true, false, true));
}

TEST(ArenaPlanner, NeverGivesTwoLivingBuffersTheSameFloatsAndReusesDeadOnes) {
  struct Buffer {
    int64_t offset, floats, first_op, last_op;
  };
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    ArenaPlanner arena;
    std::vector<Buffer> buffers;
    int64_t wanted = 0;
    for (int64_t op = 0; op < 60; ++op) {
      const auto floats = static_cast<int64_t>(16 * (1 + random() % 20));
      const auto last_op = op + static_cast<int64_t>(random() % 8);
      buffers.push_back({arena.allocate(floats, op, last_op), floats, op, last_op});
      wanted += floats;
      EXPECT_LE(buffers.back().offset + floats, arena.size());
    }
    for (const Buffer& a : buffers) {
      for (const Buffer& b : buffers) {
        const bool same_time = a.first_op <= b.last_op && b.first_op <= a.last_op;
        const bool same_place = a.offset < b.offset + b.floats && b.offset < a.offset + a.floats;
        EXPECT_FALSE(&a != &b && same_time && same_place);
      }
    }
    EXPECT_LT(arena.size(), wanted / 4);
  }
}

TEST(ActivationSlots, AreSharedByEqualWidthsAndPlanesOfOneUse) {
  constexpr auto kLinear = ActivationSlots::Use::kLinear,
                 kAttention = ActivationSlots::Use::kAttention;
  ActivationSlots slots;
  EXPECT_EQ(slots.slot({576, 2, kLinear}), 0u);
  EXPECT_EQ(slots.slot({1536, 2, kLinear}), 1u);
  EXPECT_EQ(slots.slot({576, 0, kLinear}), 2u);
  EXPECT_EQ(slots.slot({576, 2, kLinear}), 0u);
  EXPECT_EQ(slots.slot({576, 2, kAttention}), 3u);
  EXPECT_EQ(slots.all().size(), 4u);
}

}  // namespace
}  // namespace espalier::units::cpu
