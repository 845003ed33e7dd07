// The op table: one row per kind of op, with what it is called, what it reads and writes, the rule
// that gives its output shapes and the rule that counts its arithmetic. Builder, validator,
// printer, parser and work counter all read this table; the semantics are in program/program.h, the
// definition in units/reference. Immutable and thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/base/result.h"
#include "espalier/program/program.h"

namespace espalier::program {

// What validation lets through, so that units can rely on it: taps of a short convolution, and
// radians a position (times any position, far inside fp32).
inline constexpr int64_t kMaxConvTaps = 64;
inline constexpr double kMaxRopeFrequency = 1e6;

// In the order of Attribute::value's alternatives.
enum class AttributeType : uint8_t { kInteger, kNumber, kText, kList };

struct AttributeSpec {
  std::string_view name;
  AttributeType type = AttributeType::kInteger;
};

struct InputSpec {
  std::string_view name;
  Encoding dtype = Encoding::kF32;
};

struct OutputSpec {
  std::string_view name;
  Shape shape;
  Encoding dtype = Encoding::kF32;
};

// An op with the things its ids stand for. Every id must be in range.
struct OpView {
  const Program& program;
  const Op& op;

  const Shape& input(size_t index) const { return program.value(op.inputs.at(index)).shape; }
  bool has_weight(size_t index) const { return index < op.weights.size(); }
  const Weight& weight(size_t index) const {
    return program.weights.at(static_cast<size_t>(op.weights.at(index)));
  }
  const State& state() const { return program.states.at(static_cast<size_t>(op.state)); }
};

// Checks the operands against each other and gives the outputs. The error says which rule was
// broken.
using ShapeRule = Result<std::vector<OutputSpec>> (*)(const OpView& view);
// Multiplications plus additions of one call with `rows` rows after `committed` positions.
using FlopRule = double (*)(const OpView& view, int64_t rows, int64_t committed);

// A short list that lives in a constexpr table.
template <typename T, size_t Capacity>
class FixedList {
 public:
  constexpr FixedList(std::initializer_list<T> items) : size_(items.size()) {
    size_t i = 0;
    for (const T& item : items) items_[i++] = item;
  }
  constexpr size_t size() const { return size_; }
  constexpr const T* begin() const { return items_.data(); }
  constexpr const T* end() const { return items_.data() + size_; }
  constexpr const T& operator[](size_t index) const { return items_[index]; }

 private:
  std::array<T, Capacity> items_{};
  size_t size_;
};

struct OpInfo {
  OpKind kind;
  std::string_view name;
  FixedList<InputSpec, 2> inputs;
  FixedList<std::string_view, 2> weights;
  size_t optional_weights;  // so many of the last weights may be left out
  std::optional<StateKind> state;
  FixedList<AttributeSpec, 4> attributes;
  ShapeRule shapes;
  FlopRule flops;
};

// Rows in the order of OpKind.
std::span<const OpInfo> op_table();
const OpInfo& op_info(OpKind kind);
const OpInfo* find_op(std::string_view name);  // nullptr: no such op

// Counts and types of inputs, weights, state and attributes, then the shape rule.
Result<std::vector<OutputSpec>> check_op(const OpView& view);

std::string_view name_of(StateKind kind);
std::string_view name_of(Head head);
size_t output_count(Head head);              // max and index, logits, nothing
std::string shape_text(const Shape& shape);  // "[64, 576]"

// The broken rule's id goes in square brackets behind the subject: "input 'x' [linear.columns]".
Error rule_error(std::string_view rule, std::string_view subject, std::string expected,
                 std::string actual, std::string fix);

}  // namespace espalier::program
