#include "espalier/program/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "espalier/program/ops.h"
#include "tests/program/small_program.h"

namespace espalier::program {
namespace {

using testing::HasSubstr;

Op& first_op(Program& program, OpKind kind) {
  for (Op& op : program.ops) {
    if (op.kind == kind) return op;
  }
  check_failed(__FILE__, __LINE__, "no such op");
}

void set(Program& program, OpKind kind, std::string_view name,
         const decltype(Attribute::value)& value) {
  for (Attribute& attribute : first_op(program, kind).attributes) {
    if (attribute.name == name) attribute.value = value;
  }
}

Value& value_of(Program& program, std::string_view name) {
  for (Value& value : program.values) {
    if (value.name == name) return value;
  }
  check_failed(__FILE__, __LINE__, "no such value");
}

size_t index_of(const Program& program, OpKind kind) {
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].kind == kind) return i;
  }
  check_failed(__FILE__, __LINE__, "no such op");
}

struct Broken {
  const char* what;
  std::function<void(Program&)> break_it;
  const char* message;
};

// GoogleTest would print the bytes of the function.
void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.what; }

class BrokenPrograms : public testing::TestWithParam<Broken> {};

TEST_P(BrokenPrograms, AreRefusedWithTheRule) {
  Program program = small_program();
  GetParam().break_it(program);
  const Status status = validate(program);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message(), HasSubstr(GetParam().message));
  EXPECT_FALSE(status.error().fix.empty());
}

const Broken kBroken[] = {
    // Sizes, values, weights, states.
    {"NoRows", [](Program& p) { p.rows = 0; }, "rows [program.size]: expected 1 to 1024, got 0"},
    {"HugeWindow", [](Program& p) { p.rows = 1 << 20; }, "rows [program.size]"},
    {"NegativeBucket", [](Program& p) { p.kv_rows = -1; }, "kv_rows [program.size]"},
    {"MoreSelectedThanRows", [](Program& p) { p.selected = 9; },
     "selected [program.size]: expected 1 to 8, got 9"},
    {"ValueWithoutChannels", [](Program& p) { value_of(p, "layers.1.q").shape.channels = 0; },
     "'layers.1.q' [value.shape]"},
    {"ValueBeyondTheLimit", [](Program& p) { value_of(p, "layers.1.q").shape.rows = INT64_MAX; },
     "'layers.1.q' [value.shape]"},
    {"ValueOfHalves", [](Program& p) { value_of(p, "layers.1.q").dtype = Encoding::kF16; },
     "[value.dtype]: expected f32 or i32, got f16"},
    {"WeightPastItsTensor", [](Program& p) { p.weights[3].first_row = 7; },
     "weight 'kv.weight' [weight.rows]: expected rows within the tensor's 12, got 6 rows from row "
     "7"},
    {"WeightBeforeItsTensor", [](Program& p) { p.weights[3].first_row = -1; }, "[weight.rows]"},
    {"WeightWithoutRows", [](Program& p) { p.weights[0].rows = 0; },
     "weight 'conv.weight' [weight.shape]"},
    {"WeightOfHugeTensor", [](Program& p) { p.weights[0].tensor_rows = INT64_MAX; },
     "weight 'conv.weight' [weight.shape]"},
    {"StateOfAnotherBucket", [](Program& p) { p.states[1].shape.rows = 31; },
     "state 'kv1' [state.bucket]: expected 32 rows, got [31, 6]"},
    {"StateWithoutChannels", [](Program& p) { p.states[1].shape.channels = 0; },
     "state 'kv1' [state.shape]"},
    {"StatesOfOneName", [](Program& p) { p.states[1].name = "conv0"; },
     "state 'conv0' [state.name]"},
    {"StateThatNobodyWrites",
     [](Program& p) {
       p.states.push_back({"spare", StateKind::kKeyValue, {32, 6}});
     },
     "state 'spare' [state.unused]"},
    // Inputs.
    {"InputOutOfRange", [](Program& p) { p.inputs[0] = 77; }, "inputs [program.input]"},
    {"UnknownInput", [](Program& p) { value_of(p, "positions").name = "time"; },
     "input %1 'time' [program.input]"},
    {"InputTwice", [](Program& p) { p.inputs.push_back(0); }, "each at most once"},
    {"MaskOfAnotherShape",
     [](Program& p) {
       value_of(p, "ancestors").shape = {8, 9};
     },
     "input %2 'ancestors' [program.input]: expected i32[8, 8], got i32[8, 9]"},
    {"PositionsAsFloats", [](Program& p) { value_of(p, "positions").dtype = Encoding::kF32; },
     "expected i32[8, 1], got f32[8, 1]"},
    // Ids and order.
    {"OperandOutOfRange", [](Program& p) { p.ops[1].inputs[0] = 1000; },
     "op 1 (rms_norm): input [op.input]: expected a value of the program, got %1000"},
    {"OperandBelowZero", [](Program& p) { p.ops[1].inputs[0] = -1; }, "[op.input]"},
    {"UseBeforeDefinition", [](Program& p) { std::swap(p.ops[0], p.ops[1]); },
     "op 0 (rms_norm): input value %5 'layers.0.conv' [op.order]"},
    {"WeightOutOfRange", [](Program& p) { p.ops[1].weights[0] = 50; },
     "op 1 (rms_norm): weight [op.weight]: expected a weight of the program, got @50"},
    {"StateOutOfRange", [](Program& p) { first_op(p, OpKind::kAttention).state = 5; },
     "(attention): state [op.state]: expected a state of the program, got $5"},
    {"DefinedTwice", [](Program& p) { p.ops[1].outputs = p.ops[0].outputs; },
     "op 1 (rms_norm): output 'y' = %5 'layers.0.conv' [op.once]"},
    {"OutputOutOfRange", [](Program& p) { p.ops[1].outputs[0] = 99; }, "output [op.output]"},
    {"OutputOfAnotherShape",
     [](Program& p) {
       value_of(p, "layers.1.norm").shape = {8, 11};
     },
     "[op.shape]: expected f32[8, 12], got f32[8, 11]"},
    {"MissingOutput", [](Program& p) { p.ops[1].outputs.clear(); },
     "number of outputs [op.outputs]: expected 1, got 0"},
    // Counts and attributes.
    {"MissingInput", [](Program& p) { first_op(p, OpKind::kAdd).inputs.pop_back(); },
     "(add): number of inputs [op.inputs]: expected 2, got 1"},
    {"TooManyWeights",
     [](Program& p) {
       first_op(p, OpKind::kLinear).weights = {2, 2, 2};
     },
     "(linear): number of weights [op.weights]: expected 1 to 2, got 3"},
    {"MissingState", [](Program& p) { first_op(p, OpKind::kKvWrite).state = kNone; },
     "(kv_write): state [op.state]: expected a key_value state, got none"},
    {"StateWhereNoneBelongs", [](Program& p) { first_op(p, OpKind::kAdd).state = 0; },
     "(add): state [op.state]: expected none, got $0"},
    {"StateOfAnotherKind", [](Program& p) { first_op(p, OpKind::kKvWrite).state = 0; },
     "state 'conv0' [op.state]: expected key_value, got short_conv"},
    {"MissingAttribute", [](Program& p) { first_op(p, OpKind::kRmsNorm).attributes.clear(); },
     "attribute 0 [op.attributes]: expected 'epsilon', a number, got nothing"},
    {"SpareAttribute",
     [](Program& p) {
       first_op(p, OpKind::kAdd).attributes.push_back({"x", int64_t{1}});
     },
     "attribute 0 [op.attributes]: expected nothing more, got 'x', an integer"},
    {"AttributeOfAnotherType", [](Program& p) { set(p, OpKind::kRmsNorm, "epsilon", int64_t{1}); },
     "expected 'epsilon', a number, got 'epsilon', an integer"},
    {"IndicesAsActivations",
     [](Program& p) {
       first_op(p, OpKind::kGatherRows).inputs = {0, 0};
     },
     "(gather_rows): input 'selected' = %0 'embeddings' [op.dtype]: expected i32, got f32"},
    // Rules of ops.
    {"LinearOfAnotherWidth", [](Program& p) { p.weights[2].columns = 11; },
     "(linear): weight 'q.weight' [linear.columns]: expected [12, 12], got [12, 11]"},
    {"BiasOfAnotherSize", [](Program& p) { p.weights[4].rows = 5; },
     "weight 'kv.bias' [linear.bias]: expected [1, 6], got [5, 1]"},
    {"NormGroupThatDoesNotDivide", [](Program& p) { p.weights[1].columns = 5; },
     "[rms_norm.group]: expected a multiple of 5 channels, got [8, 12]"},
    {"EpsilonOfOne", [](Program& p) { set(p, OpKind::kRmsNorm, "epsilon", 1.0); },
     "[rms_norm.epsilon]"},
    {"EpsilonNotANumber", [](Program& p) { set(p, OpKind::kRmsNorm, "epsilon", std::nan("")); },
     "[rms_norm.epsilon]"},
    {"HeadsThatDoNotDivide", [](Program& p) { set(p, OpKind::kAttention, "heads", int64_t{5}); },
     "[attention.heads]: expected a divisor of 12 channels, got 5"},
    {"NoHeads", [](Program& p) { set(p, OpKind::kAttention, "heads", int64_t{0}); },
     "[attention.heads]"},
    {"KvHeadsThatDoNotDivide",
     [](Program& p) { set(p, OpKind::kAttention, "kv_heads", int64_t{3}); },
     "[attention.kv_heads]: expected a divisor of 2 heads, got 3"},
    {"AnotherHeadDim", [](Program& p) { set(p, OpKind::kAttention, "head_dim", int64_t{4}); },
     "[attention.head_dim]: expected 6, got 4"},
    {"CacheOfAnotherWidth", [](Program& p) { set(p, OpKind::kAttention, "kv_heads", int64_t{2}); },
     "state 'kv1' [attention.state]: expected 12 channels, got [32, 6]"},
    {"InfiniteScale", [](Program& p) { set(p, OpKind::kAttention, "scale", HUGE_VAL); },
     "[attention.scale]"},
    {"RopeOfOddStyle", [](Program& p) { set(p, OpKind::kRope, "style", std::string("gpt")); },
     "[rope.style]: expected \"neox\" or \"interleaved\", got gpt"},
    {"RopeOfTooManyPairs",
     [](Program& p) { set(p, OpKind::kRope, "frequencies", std::vector<double>(4)); },
     "[rope.frequencies]: expected 1 to 3 values, got 4"},
    {"RopeWithoutPairs",
     [](Program& p) { set(p, OpKind::kRope, "frequencies", std::vector<double>()); },
     "[rope.frequencies]"},
    {"RopeOfInfiniteFrequency",
     [](Program& p) { set(p, OpKind::kRope, "frequencies", std::vector<double>{HUGE_VAL}); },
     "[rope.frequencies]: expected values up to 1000000, got inf"},
    {"RopeHeadsThatDoNotDivide", [](Program& p) { set(p, OpKind::kRope, "head_dim", int64_t{7}); },
     "[rope.head_dim]: expected a divisor of 12 channels, got 7"},
    {"ConvKernelOfOne", [](Program& p) { p.weights[0].columns = 1; }, "[short_conv.kernel]"},
    {"ConvGatherOfAnotherKernel", [](Program& p) { p.weights[0].columns = 4; },
     "[short_conv.gather]: expected [8, 3], got [8, 2]"},
    {"ConvStateOfAnotherWidth", [](Program& p) { p.states[0].shape.channels = 11; },
     "state 'conv0' [short_conv.state]: expected [2, 12], got [2, 11]"},
    {"SubrangeOfNothing", [](Program& p) { set(p, OpKind::kHeadArgmax, "subrange", int64_t{0}); },
     "[head.subrange]"},
    {"AddOfTwoShapes", [](Program& p) { first_op(p, OpKind::kAdd).inputs[1] = 8; },
     "[elementwise.shape]: expected [8, 12], got [8, 6]"},
    // Use of states.
    {"AttentionBeforeItsWrite",
     [](Program& p) {
       p.ops.erase(p.ops.begin() + static_cast<long>(index_of(p, OpKind::kKvWrite)));
     },
     "state 'kv1' [attention.order]: expected a kv_write before the attention, got none"},
    {"StateWrittenTwice", [](Program& p) { p.ops.push_back(first_op(p, OpKind::kKvWrite)); },
     "state 'kv1' [state.once]"},
    // Outputs.
    {"OutputsOfAnotherHead", [](Program& p) { p.head = Head::kLogits; },
     "[program.tap]: expected f32 rows of the window"},
    {"LogitsThatAreNone", [](Program& p) { p.head = Head::kLogits, p.outputs = {p.outputs[1]}; },
     "outputs [program.head]: expected logits (f32), got 1 values"},
    {"TappedRowsOfTheHead",
     [](Program& p) {
       const auto head = std::ranges::find(p.ops, OpKind::kHeadArgmax, &Op::kind);
       p.outputs.push_back(head->inputs[0]);
     },
     "[program.tap]: expected f32 rows of the window, [8, ...]"},
    {"NoOutputs", [](Program& p) { p.outputs.clear(); }, "outputs [program.head]"},
    {"UnknownOutput", [](Program& p) { p.outputs[0] = 400; }, "outputs [program.output]"},
};

INSTANTIATE_TEST_SUITE_P(Validate, BrokenPrograms, testing::ValuesIn(kBroken),
                         [](const auto& info) { return info.param.what; });

TEST(Validate, AcceptsWhatTheBuilderMakes) {
  EXPECT_TRUE(validate(small_program()).ok());
  EXPECT_TRUE(validate(small_program(Head::kLogits)).ok());
}

TEST(ValidateSet, AcceptsFunctionsThatShareStates) {
  ProgramSet set{.functions = {small_program(), small_program(Head::kLogits)}};
  set.functions[1].name = "logits";
  EXPECT_TRUE(validate(set).ok());
}

TEST(ValidateSet, RefusesAnEmptySet) {
  EXPECT_THAT(validate(ProgramSet{}).error().message(), HasSubstr("[set.empty]"));
}

TEST(ValidateSet, RefusesTwoFunctionsOfOneName) {
  EXPECT_THAT(
      validate(ProgramSet{.functions = {small_program(), small_program()}}).error().message(),
      HasSubstr("function 'small' [set.name]"));
}

TEST(ValidateSet, RefusesFunctionsWithOtherStates) {
  ProgramSet set{.functions = {small_program(), small_program()}};
  set.functions[1].name = "other";
  set.functions[1].states[1].name = "kv2";
  EXPECT_THAT(
      validate(set).error().message(),
      HasSubstr("function 'other': states [set.states]: expected those of function 'small'"));
}

}  // namespace
}  // namespace espalier::program
