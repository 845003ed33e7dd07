#include "espalier/program/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "espalier/program/ops.h"
#include "espalier/program/validate.h"
#include "tests/program/small_program.h"

namespace espalier::program {
namespace {

using testing::HasSubstr;

// Any program that the data structure can hold, valid or not.
class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  Program make() {
    Program program;
    program.name = name();
    program.rows = integer();
    program.kv_rows = integer();
    program.selected = integer();
    program.head = static_cast<Head>(below(3));
    for (int i = below(4); i > 0; --i) {
      program.states.push_back(
          {name(), coin() ? StateKind::kKeyValue : StateKind::kShortConv, {integer(), integer()}});
    }
    for (int i = below(5); i > 0; --i) {
      program.weights.push_back({name(), integer(), integer(), integer(), integer()});
    }
    for (int i = below(6); i > 0; --i) {
      program.values.push_back({name(), {integer(), integer()}, static_cast<Encoding>(below(25))});
    }
    program.inputs = ids();
    program.outputs = ids();
    for (int i = below(8); i > 0; --i) program.ops.push_back(op());
    return program;
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<uint32_t>(count)); }
  bool coin() { return below(2) == 0; }

  int64_t integer() {
    const auto any = static_cast<int64_t>((uint64_t{random_()} << 32) | random_());
    return coin() ? below(2000) : any;
  }

  // Doubles of all bit patterns but NaNs, which are not equal to themselves.
  double number() {
    const double any = std::bit_cast<double>((uint64_t{random_()} << 32) | random_());
    if (std::isnan(any) || coin()) return below(9) - 4;
    return any;
  }

  std::string name() {
    std::string text;
    const bool plain = coin();
    for (int i = below(12); i > 0; --i) {
      text += plain ? "abze09_.-"[below(9)] : static_cast<char>(below(256));
    }
    return text;
  }

  std::vector<int32_t> ids() {
    std::vector<int32_t> list;
    for (int i = below(4); i > 0; --i) list.push_back(below(1000) - 3);
    return list;
  }

  Attribute attribute() {
    const int kind = below(4);
    if (kind == 0) return {name(), integer()};
    if (kind == 1) return {name(), number()};
    if (kind == 2) return {name(), name()};
    std::vector<double> list;
    for (int i = below(5); i > 0; --i) list.push_back(number());
    return {name(), list};
  }

  Op op() {
    Op op{.kind = static_cast<OpKind>(below(15)), .inputs = ids(), .weights = ids()};
    op.outputs = ids();
    op.state = below(4) - 1;
    for (int i = below(4); i > 0; --i) op.attributes.push_back(attribute());
    return op;
  }

  std::mt19937 random_;
};

TEST(ProgramText, ReadsBackEveryProgramThatCanBePrinted) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const Program program = RandomProgram(seed).make();
    const std::string text = print(program);
    const auto parsed = parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message() << "\n" << text;
    ASSERT_EQ(*parsed, program) << text;
    ASSERT_EQ(print(*parsed), text);
  }
}

TEST(ProgramText, KeepsEveryBitOfADouble) {
  Program program = small_program();
  for (Op& op : program.ops) {
    for (Attribute& attribute : op.attributes) {
      if (attribute.name == "epsilon") attribute.value = std::nextafter(1e-5, 1.0);
    }
  }
  const auto parsed = parse(print(program));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, program);
}

TEST(ProgramText, IsStable) {
  EXPECT_THAT(print(small_program()),
              HasSubstr("program small rows=8 kv_rows=32 selected=2 head=argmax\n"
                        "state $0 conv0 short_conv[2, 12]\n"
                        "state $1 kv1 key_value[32, 6]\n"
                        "weight @0 conv.weight rows=0+12/12 columns=3\n"));
  EXPECT_THAT(print(small_program()),
              HasSubstr("%10 = rope(%7, %1) {head_dim=6, style=\"neox\", frequencies=[1.0, 0.25], "
                        "scale=1.0}  # layers.1.rotated [8, 12]\n"
                        "kv_write(%8, %9) $1\n"));
}

TEST(ProgramText, AllowsCommentsAndEmptyLines) {
  const auto parsed = parse(
      "\n# a program\nprogram p rows=1 kv_rows=2 selected=1 head=logits # end\r\n\n"
      "value %0 embeddings f32[1, 4]\n  inputs %0\n\n\noutputs %0");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(parsed->value(0).name, "embeddings");
}

// Any cut and any changed byte ends as a program or as an error, never as a crash.
TEST(ProgramText, SurvivesDamage) {
  const std::string text = print(small_program());
  std::mt19937 random(3);
  int errors = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = text.substr(0, round % 4 == 0 ? random() % text.size() : text.size());
    for (int change = 0; change < 1 + round % 3 && !damaged.empty(); ++change) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    const auto parsed = parse(damaged);
    if (!parsed.ok()) ++errors;
    if (parsed.ok()) (void)validate(*parsed).ok();
  }
  EXPECT_GT(errors, 1000);
}

struct BrokenText {
  const char* what;
  const char* text;
  const char* message;
};

constexpr const char* kHeader = "program p rows=1 kv_rows=2 selected=1 head=logits\n";

class BrokenTexts : public testing::TestWithParam<BrokenText> {};

TEST_P(BrokenTexts, AreRefusedWithTheirPlace) {
  const auto& broken = GetParam();
  const std::string text =
      broken.text[0] == '!' ? broken.text + 1 : kHeader + std::string(broken.text);
  const auto parsed = parse(text);
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().message(), HasSubstr(broken.message));
}

INSTANTIATE_TEST_SUITE_P(
    ProgramText, BrokenTexts,
    testing::Values(
        BrokenText{"Empty", "!", "line 1, column 1: expected 'program', got the end of the text"},
        BrokenText{"NoName", "!program\n",
                   "line 1, column 8: expected a name, got the end of the line"},
        BrokenText{"NoHead", "!program p rows=1 kv_rows=2 selected=1 head=both",
                   "column 44: expected 'argmax', 'logits' or 'none', got 'both'"},
        BrokenText{"NumberTooLong", "!program p rows=99999999999999999999 kv_rows=2",
                   "column 16: expected an integer of 64 bits"},
        BrokenText{"NoOutputs", "inputs\n", "expected lines 'inputs' and 'outputs'"},
        BrokenText{"InputsTwice", "inputs\ninputs\n", "line 3, column 1: expected this line once"},
        BrokenText{"GapInIds", "value %1 x f32[1, 1]\n",
                   "line 2, column 7: expected %0, the next of its kind, got %1"},
        BrokenText{"UnknownType", "value %0 x f31[1, 1]\n",
                   "line 2, column 12: expected a type such as f32, got 'f31'"},
        BrokenText{"UnknownState", "state $0 s cache[1, 1]\n",
                   "column 12: expected 'key_value' or 'short_conv', got 'cache'"},
        BrokenText{"ShapeOfOne", "value %0 x f32[1]\n", "column 17: expected ',', got ']'"},
        BrokenText{"WeightWithoutTotal", "weight @0 w rows=0+1 columns=1\n",
                   "column 22: expected '/', got 'columns'"},
        BrokenText{
            "UnknownOp", "%0 = softmax(%1)\n",
            "line 2, column 6: expected a declaration or an op of the op table, got 'softmax'"},
        BrokenText{"RestOfLine", "kv_write(%0, %1) $0 $1\n",
                   "column 21: expected the end of the line, got '$'"},
        BrokenText{"OpenQuote", "value %0 \"x f32[1, 1]\n", "column 10: expected a closing quote"},
        BrokenText{"BadEscape", "value %0 \"\\q\" f32[1, 1]\n", "column 10: expected an escape"},
        BrokenText{"IdTooLong", "inputs %3000000000\n", "column 9: expected an id of 32 bits"},
        BrokenText{"BadList", "%0 = gelu(%1) {a=[1.0 2.0]}\n",
                   "column 23: expected ',', got '2.0'"},
        BrokenText{"BadNumber", "%0 = gelu(%1) {a=1.2.3}\n", "column 18: expected a number"},
        BrokenText{"OpenBraces", "%0 = gelu(%1) {a=1\n", "column 19: expected '}'"}),
    [](const auto& info) { return info.param.what; });

TEST(ProgramText, RefusesTextBeyondTheLimit) {
  const auto parsed = parse(std::string(kMaxProgramTextBytes + 1, '#'));
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().message(), HasSubstr("too long"));
}

}  // namespace
}  // namespace espalier::program
