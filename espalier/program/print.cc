#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "espalier/program/ops.h"
#include "espalier/program/text.h"

namespace espalier::program {
namespace {

using Text = std::back_insert_iterator<std::string>;

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

// Names that read as one word are printed bare.
std::string name_text(std::string_view name) {
  const bool bare = !name.empty() && std::all_of(name.begin(), name.end(), is_word_character);
  return bare ? std::string(name) : quoted(name);
}

// Shortest text that reads back as the same double, never mistakable for an integer.
std::string double_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

struct AttributeText {
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return double_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<double>& values) const {
    std::string text = "[";
    for (size_t i = 0; i < values.size(); ++i) text += (i > 0 ? ", " : "") + double_text(values[i]);
    return text + "]";
  }
};

void print_declarations(const Program& program, Text out) {
  fmt::format_to(out, "program {} rows={} kv_rows={} selected={} head={}\n",
                 name_text(program.name), program.rows, program.kv_rows, program.selected,
                 name_of(program.head));
  for (size_t i = 0; i < program.states.size(); ++i) {
    const State& state = program.states[i];
    fmt::format_to(out, "state ${} {} {}{}\n", i, name_text(state.name), name_of(state.kind),
                   shape_text(state.shape));
  }
  for (size_t i = 0; i < program.weights.size(); ++i) {
    const Weight& weight = program.weights[i];
    fmt::format_to(out, "weight @{} {} rows={}+{}/{} columns={}\n", i, name_text(weight.tensor),
                   weight.first_row, weight.rows, weight.tensor_rows, weight.columns);
  }
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    fmt::format_to(out, "value %{} {} {}{}\n", i, name_text(value.name),
                   espalier::name_of(value.dtype), shape_text(value.shape));
  }
}

void print_ids(std::string_view keyword, const std::vector<ValueId>& ids, Text out) {
  fmt::format_to(out, "{}", keyword);
  for (const ValueId id : ids) fmt::format_to(out, " %{}", id);
  fmt::format_to(out, "\n");
}

// For the reader: the name and shape of what the op makes.
void print_op_comment(const Program& program, const Op& op, Text out) {
  const char* separator = "  # ";
  for (const ValueId id : op.outputs) {
    if (id < 0 || static_cast<size_t>(id) >= program.values.size()) continue;
    const Value& value = program.value(id);
    fmt::format_to(out, "{}{} {}", separator, name_text(value.name), shape_text(value.shape));
    separator = ", ";
  }
}

void print_op(const Program& program, const Op& op, Text out) {
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    fmt::format_to(out, "{}%{}", i > 0 ? ", " : "", op.outputs[i]);
  }
  fmt::format_to(out, "{}{}(", op.outputs.empty() ? "" : " = ", op_info(op.kind).name);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    fmt::format_to(out, "{}%{}", i > 0 ? ", " : "", op.inputs[i]);
  }
  fmt::format_to(out, ")");
  for (const WeightId id : op.weights) fmt::format_to(out, " @{}", id);
  if (op.state != kNone) fmt::format_to(out, " ${}", op.state);
  for (size_t i = 0; i < op.attributes.size(); ++i) {
    const Attribute& attribute = op.attributes[i];
    fmt::format_to(out, "{}{}={}", i > 0 ? ", " : " {", name_text(attribute.name),
                   std::visit(AttributeText{}, attribute.value));
  }
  if (!op.attributes.empty()) fmt::format_to(out, "}}");
  print_op_comment(program, op, out);
  fmt::format_to(out, "\n");
}

}  // namespace

std::string print(const Program& program) {
  std::string text;
  const Text out = std::back_inserter(text);
  print_declarations(program, out);
  print_ids("inputs", program.inputs, out);
  for (const Op& op : program.ops) print_op(program, op, out);
  print_ids("outputs", program.outputs, out);
  return text;
}

}  // namespace espalier::program
