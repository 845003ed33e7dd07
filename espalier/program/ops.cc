#include "espalier/program/ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace espalier::program {
namespace {

using Outputs = Result<std::vector<OutputSpec>>;

std::vector<OutputSpec> one_output(Shape shape) {
  return {OutputSpec{.name = "y", .shape = shape, .dtype = Encoding::kF32}};
}

std::string input_text(const OpView& view, size_t index) {
  const auto id = view.op.inputs[index];
  return fmt::format("input '{}' = %{} '{}'", op_info(view.op.kind).inputs[index].name, id,
                     view.program.value(id).name);
}

Status expect_input(const OpView& view, size_t index, Shape expected, std::string_view rule) {
  if (view.input(index) == expected) return Ok{};
  return rule_error(rule, input_text(view, index), shape_text(expected),
                    shape_text(view.input(index)), "Give the op a value of that shape.");
}

Status expect_weight(const OpView& view, size_t index, Shape expected, std::string_view rule) {
  const Weight& weight = view.weight(index);
  if (Shape{weight.rows, weight.columns} == expected) return Ok{};
  return rule_error(rule, fmt::format("weight '{}'", weight.tensor), shape_text(expected),
                    shape_text({weight.rows, weight.columns}),
                    "Read as many rows and columns as the op's inputs and outputs have channels.");
}

// A bias is a whole vector [1, n], or n of its elements read as rows of one column.
Status expect_bias(const OpView& view, size_t index, int64_t size, std::string_view rule) {
  const Weight& weight = view.weight(index);
  if (weight.columns == 1 && weight.rows == size) return Ok{};
  return expect_weight(view, index, {1, size}, rule);
}

Status expect_that(bool holds, std::string_view rule, const std::string& subject,
                   std::string expected, std::string actual) {
  if (holds) return Ok{};
  return rule_error(rule, subject, std::move(expected), std::move(actual),
                    "Correct the op or its attribute.");
}

Status expect_epsilon(const OpView& view, std::string_view rule) {
  const double epsilon = view.op.number("epsilon");
  return expect_that(std::isfinite(epsilon) && epsilon >= 0 && epsilon < 1, rule,
                     "attribute 'epsilon'", "a number from 0 to below 1",
                     fmt::format("{}", epsilon));
}

// Units compute with it as fp32.
Status expect_scale(const OpView& view, std::string_view rule) {
  const double scale = view.op.number("scale");
  constexpr double kMost = std::numeric_limits<float>::max();
  return expect_that(std::abs(scale) <= kMost, rule, "attribute 'scale'",
                     "a number that fp32 can hold", fmt::format("{}", scale));
}

Outputs linear_shapes(const OpView& view) {
  const Shape x = view.input(0);
  const int64_t outputs = view.weight(0).rows;
  RETURN_IF_ERROR(expect_weight(view, 0, {outputs, x.channels}, "linear.columns"));
  if (view.has_weight(1)) RETURN_IF_ERROR(expect_bias(view, 1, outputs, "linear.bias"));
  return one_output({x.rows, outputs});
}

Outputs rms_norm_shapes(const OpView& view) {
  const Shape x = view.input(0);
  const int64_t group = view.weight(0).columns;
  RETURN_IF_ERROR(expect_weight(view, 0, {1, group}, "rms_norm.weight"));
  RETURN_IF_ERROR(expect_that(x.channels % group == 0, "rms_norm.group", input_text(view, 0),
                              fmt::format("a multiple of {} channels", group), shape_text(x)));
  RETURN_IF_ERROR(expect_epsilon(view, "rms_norm.epsilon"));
  return one_output(x);
}

Outputs layer_norm_shapes(const OpView& view) {
  const Shape x = view.input(0);
  RETURN_IF_ERROR(expect_weight(view, 0, {1, x.channels}, "layer_norm.weight"));
  RETURN_IF_ERROR(expect_weight(view, 1, {1, x.channels}, "layer_norm.bias"));
  RETURN_IF_ERROR(expect_epsilon(view, "layer_norm.epsilon"));
  return one_output(x);
}

Outputs rope_shapes(const OpView& view) {
  const Shape x = view.input(0);
  const int64_t head_dim = view.op.integer("head_dim");
  const auto& frequencies = view.op.list("frequencies");
  const auto& style = view.op.text("style");
  RETURN_IF_ERROR(expect_input(view, 1, {x.rows, 1}, "rope.positions"));
  RETURN_IF_ERROR(expect_that(
      head_dim >= 1 && x.channels % head_dim == 0, "rope.head_dim", "attribute 'head_dim'",
      fmt::format("a divisor of {} channels", x.channels), fmt::format("{}", head_dim)));
  const auto pairs = static_cast<int64_t>(frequencies.size());
  RETURN_IF_ERROR(expect_that(
      pairs >= 1 && pairs <= head_dim / 2, "rope.frequencies", "attribute 'frequencies'",
      fmt::format("1 to {} values", head_dim / 2), fmt::format("{}", pairs)));
  for (const double frequency : frequencies) {
    RETURN_IF_ERROR(expect_that(
        std::abs(frequency) <= kMaxRopeFrequency, "rope.frequencies", "attribute 'frequencies'",
        fmt::format("values up to {}", kMaxRopeFrequency), fmt::format("{}", frequency)));
  }
  RETURN_IF_ERROR(expect_that(style == "neox" || style == "interleaved", "rope.style",
                              "attribute 'style'", "\"neox\" or \"interleaved\"", style));
  RETURN_IF_ERROR(expect_scale(view, "rope.scale"));
  return one_output(x);
}

Outputs short_conv_shapes(const OpView& view) {
  const Shape z = view.input(0);
  const int64_t kernel = view.weight(0).columns;
  RETURN_IF_ERROR(expect_that(kernel >= 2 && kernel <= kMaxConvTaps, "short_conv.kernel",
                              fmt::format("weight '{}'", view.weight(0).tensor),
                              fmt::format("a kernel of 2 to {} taps", kMaxConvTaps),
                              fmt::format("{}", kernel)));
  RETURN_IF_ERROR(expect_weight(view, 0, {z.channels, kernel}, "short_conv.weight"));
  if (view.has_weight(1)) RETURN_IF_ERROR(expect_bias(view, 1, z.channels, "short_conv.bias"));
  RETURN_IF_ERROR(expect_input(view, 1, {z.rows, kernel - 1}, "short_conv.gather"));
  const Shape expected_state{kernel - 1, z.channels};
  RETURN_IF_ERROR(expect_that(view.state().shape == expected_state, "short_conv.state",
                              fmt::format("state '{}'", view.state().name),
                              shape_text(expected_state), shape_text(view.state().shape)));
  return one_output(z);
}

Outputs kv_write_shapes(const OpView& view) {
  const Shape k = view.input(0);
  RETURN_IF_ERROR(expect_input(view, 1, k, "kv_write.value"));
  RETURN_IF_ERROR(expect_that(view.state().shape.channels == k.channels, "kv_write.state",
                              fmt::format("state '{}'", view.state().name),
                              fmt::format("{} channels", k.channels),
                              shape_text(view.state().shape)));
  return std::vector<OutputSpec>{};
}

Outputs attention_shapes(const OpView& view) {
  const Shape q = view.input(0);
  const int64_t heads = view.op.integer("heads");
  const int64_t kv_heads = view.op.integer("kv_heads");
  const int64_t head_dim = view.op.integer("head_dim");
  RETURN_IF_ERROR(expect_input(view, 1, {q.rows, q.rows}, "attention.ancestors"));
  RETURN_IF_ERROR(
      expect_that(heads >= 1 && q.channels % heads == 0, "attention.heads", "attribute 'heads'",
                  fmt::format("a divisor of {} channels", q.channels), fmt::format("{}", heads)));
  RETURN_IF_ERROR(expect_that(kv_heads >= 1 && heads % kv_heads == 0, "attention.kv_heads",
                              "attribute 'kv_heads'", fmt::format("a divisor of {} heads", heads),
                              fmt::format("{}", kv_heads)));
  RETURN_IF_ERROR(expect_that(head_dim == q.channels / heads, "attention.head_dim",
                              "attribute 'head_dim'", fmt::format("{}", q.channels / heads),
                              fmt::format("{}", head_dim)));
  RETURN_IF_ERROR(expect_that(view.state().shape.channels == kv_heads * head_dim, "attention.state",
                              fmt::format("state '{}'", view.state().name),
                              fmt::format("{} channels", kv_heads * head_dim),
                              shape_text(view.state().shape)));
  RETURN_IF_ERROR(expect_scale(view, "attention.scale"));
  return one_output(q);
}

Outputs same_shapes(const OpView& view) {  // gated_silu, add, mul
  RETURN_IF_ERROR(expect_input(view, 1, view.input(0), "elementwise.shape"));
  return one_output(view.input(0));
}

Outputs gelu_shapes(const OpView& view) {
  const auto& form = view.op.text("approximation");
  RETURN_IF_ERROR(expect_that(form == "tanh" || form == "erf", "gelu.approximation",
                              "attribute 'approximation'", "\"tanh\" or \"erf\"", form));
  return one_output(view.input(0));
}

Outputs gather_rows_shapes(const OpView& view) {
  const Shape selected = view.input(1);
  RETURN_IF_ERROR(expect_input(view, 1, {selected.rows, 1}, "gather_rows.selected"));
  return one_output({selected.rows, view.input(0).channels});
}

Outputs head_argmax_shapes(const OpView& view) {
  const Shape x = view.input(0);
  const int64_t vocab = view.weight(0).rows;
  const int64_t subrange = view.op.integer("subrange");
  RETURN_IF_ERROR(expect_weight(view, 0, {vocab, x.channels}, "head.columns"));
  RETURN_IF_ERROR(expect_that(subrange >= 1 && subrange <= int64_t{1} << 31, "head.subrange",
                              "attribute 'subrange'", "1 to 2^31", fmt::format("{}", subrange)));
  const Shape shape{x.rows, (vocab + subrange - 1) / subrange};
  return std::vector{OutputSpec{.name = "max", .shape = shape, .dtype = Encoding::kF32},
                     OutputSpec{.name = "index", .shape = shape, .dtype = Encoding::kI32}};
}

Outputs head_logits_shapes(const OpView& view) {
  const Shape x = view.input(0);
  const int64_t vocab = view.weight(0).rows;
  RETURN_IF_ERROR(expect_weight(view, 0, {vocab, x.channels}, "head.columns"));
  return one_output({x.rows, vocab});
}

Outputs mean_pool_shapes(const OpView& view) {
  RETURN_IF_ERROR(expect_input(view, 1, {1, 1}, "mean_pool.row_count"));
  return one_output({1, view.input(0).channels});
}

// Arithmetic. Rows of the head are the selected ones, whatever the number of rows of the call.
double linear_flops(const OpView& view, int64_t rows, int64_t) {
  const Weight& weight = view.weight(0);
  return 2.0 * static_cast<double>(rows) * static_cast<double>(weight.rows) *
         static_cast<double>(weight.columns);
}
double head_flops(const OpView& view, int64_t rows, int64_t committed) {
  return linear_flops(view, std::min(rows, view.input(0).rows), committed);
}
double attention_flops(const OpView& view, int64_t rows, int64_t committed) {
  // Query times key and weight times value, over the committed positions and (r + 1) rows of the
  // window.
  const double positions = static_cast<double>(rows) * static_cast<double>(committed) +
                           static_cast<double>(rows) * static_cast<double>(rows + 1) / 2;
  return 4.0 * positions * static_cast<double>(view.input(0).channels);
}
double conv_flops(const OpView& view, int64_t rows, int64_t) {
  const Weight& weight = view.weight(0);
  return 2.0 * static_cast<double>(rows) * static_cast<double>(weight.rows) *
         static_cast<double>(weight.columns);
}
// `Count` operations an element, counting exp, sqrt and division as one.
template <int Count>
double elementwise_flops(const OpView& view, int64_t rows, int64_t) {
  return double{Count} * static_cast<double>(rows) * static_cast<double>(view.input(0).channels);
}
double no_flops(const OpView&, int64_t, int64_t) { return 0; }

constexpr Encoding kIndex = Encoding::kI32;
constexpr auto kKv = StateKind::kKeyValue;
constexpr auto kConv = StateKind::kShortConv;
constexpr auto kInteger = AttributeType::kInteger;
constexpr auto kNumber = AttributeType::kNumber;
constexpr auto kText = AttributeType::kText;
constexpr auto kList = AttributeType::kList;

constexpr std::array<OpInfo, 15> kOpTable = {{
    {OpKind::kLinear,
     "linear",
     {{"x"}},
     {"weight", "bias"},
     1,
     {},
     {},
     linear_shapes,
     linear_flops},
    {OpKind::kRmsNorm,
     "rms_norm",
     {{"x"}},
     {"weight"},
     0,
     {},
     {{"epsilon", kNumber}},
     rms_norm_shapes,
     elementwise_flops<4>},
    {OpKind::kLayerNorm,
     "layer_norm",
     {{"x"}},
     {"weight", "bias"},
     0,
     {},
     {{"epsilon", kNumber}},
     layer_norm_shapes,
     elementwise_flops<7>},
    {OpKind::kRope,
     "rope",
     {{"x"}, {"positions", kIndex}},
     {},
     0,
     {},
     {{"head_dim", kInteger}, {"style", kText}, {"frequencies", kList}, {"scale", kNumber}},
     rope_shapes,
     elementwise_flops<3>},
    {OpKind::kShortConv,
     "short_conv",
     {{"z"}, {"conv_gather", kIndex}},
     {"weight", "bias"},
     1,
     kConv,
     {},
     short_conv_shapes,
     conv_flops},
    {OpKind::kAttention,
     "attention",
     {{"q"}, {"ancestors", kIndex}},
     {},
     0,
     kKv,
     {{"heads", kInteger}, {"kv_heads", kInteger}, {"head_dim", kInteger}, {"scale", kNumber}},
     attention_shapes,
     attention_flops},
    {OpKind::kKvWrite, "kv_write", {{"k"}, {"v"}}, {}, 0, kKv, {}, kv_write_shapes, no_flops},
    {OpKind::kGatedSilu,
     "gated_silu",
     {{"gate"}, {"up"}},
     {},
     0,
     {},
     {},
     same_shapes,
     elementwise_flops<5>},
    {OpKind::kGelu,
     "gelu",
     {{"x"}},
     {},
     0,
     {},
     {{"approximation", kText}},
     gelu_shapes,
     elementwise_flops<8>},
    {OpKind::kAdd, "add", {{"a"}, {"b"}}, {}, 0, {}, {}, same_shapes, elementwise_flops<1>},
    {OpKind::kMul, "mul", {{"a"}, {"b"}}, {}, 0, {}, {}, same_shapes, elementwise_flops<1>},
    {OpKind::kGatherRows,
     "gather_rows",
     {{"x"}, {"selected", kIndex}},
     {},
     0,
     {},
     {},
     gather_rows_shapes,
     no_flops},
    {OpKind::kHeadArgmax,
     "head_argmax",
     {{"x"}},
     {"weight"},
     0,
     {},
     {{"subrange", kInteger}},
     head_argmax_shapes,
     head_flops},
    {OpKind::kHeadLogits,
     "head_logits",
     {{"x"}},
     {"weight"},
     0,
     {},
     {},
     head_logits_shapes,
     head_flops},
    {OpKind::kMeanPool,
     "mean_pool",
     {{"x"}, {"row_count", kIndex}},
     {},
     0,
     {},
     {},
     mean_pool_shapes,
     elementwise_flops<1>},
}};

constexpr std::array<std::string_view, 4> kAttributeTypeNames = {"an integer", "a number", "a text",
                                                                 "a list of numbers"};

Status check_attributes(const OpInfo& info, const Op& op) {
  for (size_t i = 0; i < std::max(info.attributes.size(), op.attributes.size()); ++i) {
    const std::string expected =
        i < info.attributes.size()
            ? fmt::format("'{}', {}", info.attributes[i].name,
                          kAttributeTypeNames[static_cast<size_t>(info.attributes[i].type)])
            : std::string("nothing more");
    const std::string actual =
        i < op.attributes.size() ? fmt::format("'{}', {}", op.attributes[i].name,
                                               kAttributeTypeNames[op.attributes[i].value.index()])
                                 : std::string("nothing");
    if (expected == actual) continue;
    return rule_error("op.attributes", fmt::format("attribute {}", i), expected, actual,
                      "Attributes come in the order of the op table.");
  }
  return Ok{};
}

Status check_counts(const OpInfo& info, const Op& op) {
  if (op.inputs.size() != info.inputs.size()) {
    return rule_error("op.inputs", "number of inputs", fmt::format("{}", info.inputs.size()),
                      fmt::format("{}", op.inputs.size()), "Give every input once.");
  }
  const size_t least = info.weights.size() - info.optional_weights;
  if (op.weights.size() < least || op.weights.size() > info.weights.size()) {
    return rule_error("op.weights", "number of weights",
                      least == info.weights.size()
                          ? fmt::format("{}", least)
                          : fmt::format("{} to {}", least, info.weights.size()),
                      fmt::format("{}", op.weights.size()), "Give every weight once.");
  }
  if ((op.state != kNone) != info.state.has_value()) {
    return rule_error("op.state", "state",
                      info.state ? fmt::format("a {} state", name_of(*info.state)) : "none",
                      op.state == kNone ? "none" : fmt::format("${}", op.state),
                      "Only attention, kv_write and short_conv have a state.");
  }
  return Ok{};
}

}  // namespace

std::span<const OpInfo> op_table() { return kOpTable; }

const OpInfo& op_info(OpKind kind) {
  const OpInfo& info = kOpTable.at(static_cast<size_t>(kind));
  CHECK(info.kind == kind);
  return info;
}

const OpInfo* find_op(std::string_view name) {
  for (const auto& info : kOpTable) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

Result<std::vector<OutputSpec>> check_op(const OpView& view) {
  const OpInfo& info = op_info(view.op.kind);
  RETURN_IF_ERROR(check_counts(info, view.op));
  RETURN_IF_ERROR(check_attributes(info, view.op));
  for (size_t i = 0; i < info.inputs.size(); ++i) {
    const Value& value = view.program.value(view.op.inputs[i]);
    if (value.dtype == info.inputs[i].dtype) continue;
    return rule_error("op.dtype", input_text(view, i),
                      std::string(espalier::name_of(info.inputs[i].dtype)),
                      std::string(espalier::name_of(value.dtype)),
                      "Positions, indices and masks are i32, activations f32.");
  }
  if (info.state && view.state().kind != *info.state) {
    return rule_error("op.state", fmt::format("state '{}'", view.state().name),
                      std::string(name_of(*info.state)), std::string(name_of(view.state().kind)),
                      "Give the op a state of its kind.");
  }
  return info.shapes(view);
}

std::string_view name_of(StateKind kind) {
  return kind == StateKind::kKeyValue ? "key_value" : "short_conv";
}

std::string_view name_of(Head head) {
  static constexpr std::array<std::string_view, 3> kNames = {"argmax", "logits", "none"};
  return kNames[static_cast<size_t>(head)];
}

size_t output_count(Head head) {
  static constexpr std::array<size_t, 3> kCounts = {2, 1, 0};
  return kCounts[static_cast<size_t>(head)];
}

std::span<const ValueId> Program::taps() const {
  return std::span(outputs).subspan(std::min(outputs.size(), output_count(head)));
}

std::string shape_text(const Shape& shape) {
  return fmt::format("[{}, {}]", shape.rows, shape.channels);
}

Error rule_error(std::string_view rule, std::string_view subject, std::string expected,
                 std::string actual, std::string fix) {
  return Error{.what = fmt::format("{} [{}]", subject, rule),
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = std::move(fix)};
}

}  // namespace espalier::program
