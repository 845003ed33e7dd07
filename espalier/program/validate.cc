#include "espalier/program/validate.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "espalier/program/ops.h"
#include "espalier/program/weight_view.h"

namespace espalier::program {
namespace {

bool in_range(int32_t id, size_t count) { return id >= 0 && static_cast<size_t>(id) < count; }

bool extents_are_sane(const Shape& shape) {
  return shape.rows >= 1 && shape.rows <= kMaxExtent && shape.channels >= 1 &&
         shape.channels <= kMaxExtent;
}

std::string value_text(const Program& program, ValueId id) {
  return fmt::format("value %{} '{}'", id, program.value(id).name);
}

Status range_rule(std::string_view subject, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return Ok{};
  return rule_error("program.size", subject, fmt::format("{} to {}", least, most),
                    fmt::format("{}", value), "Build the program with another size.");
}

Status check_sizes(const Program& program) {
  RETURN_IF_ERROR(range_rule("rows", program.rows, 1, kMaxWindowRows));
  RETURN_IF_ERROR(range_rule("kv_rows", program.kv_rows, 1, kMaxExtent));
  RETURN_IF_ERROR(range_rule("selected", program.selected, 1, program.rows));
  return Ok{};
}

Status check_values(const Program& program) {
  for (size_t i = 0; i < program.values.size(); ++i) {
    const Value& value = program.values[i];
    const auto subject = value_text(program, static_cast<ValueId>(i));
    if (!extents_are_sane(value.shape)) {
      return rule_error("value.shape", subject, "extents from 1 to 2^31", shape_text(value.shape),
                        "Every dimension holds at least one element.");
    }
    if (value.dtype != Encoding::kF32 && value.dtype != Encoding::kI32) {
      return rule_error("value.dtype", subject, "f32 or i32",
                        std::string(espalier::name_of(value.dtype)),
                        "What a unit computes in is its own affair.");
    }
  }
  return Ok{};
}

Status check_weights(const Program& program) {
  for (const Weight& weight : program.weights) {
    const auto subject = fmt::format("weight '{}'", weight.tensor);
    if (!extents_are_sane({weight.rows, weight.columns}) || weight.tensor_rows > kMaxExtent) {
      return rule_error("weight.shape", subject, "extents from 1 to 2^31",
                        shape_text({weight.rows, weight.columns}),
                        "Every dimension holds at least one element.");
    }
    if (weight.first_row < 0 || weight.first_row > weight.tensor_rows - weight.rows) {
      return rule_error("weight.rows", subject,
                        fmt::format("rows within the tensor's {}", weight.tensor_rows),
                        fmt::format("{} rows from row {}", weight.rows, weight.first_row),
                        "Read rows that the tensor has.");
    }
  }
  return Ok{};
}

Status check_states(const Program& program) {
  std::set<std::string> names;
  for (const State& state : program.states) {
    const auto subject = fmt::format("state '{}'", state.name);
    if (!extents_are_sane(state.shape)) {
      return rule_error("state.shape", subject, "extents from 1 to 2^31", shape_text(state.shape),
                        "Every dimension holds at least one element.");
    }
    if (state.kind == StateKind::kKeyValue && state.shape.rows != program.kv_rows) {
      return rule_error("state.bucket", subject, fmt::format("{} rows", program.kv_rows),
                        shape_text(state.shape), "Key and value states have the bucket's rows.");
    }
    if (!names.insert(state.name).second) {
      return rule_error("state.name", subject, "a name of its own", "the same name twice",
                        "States are known by name.");
    }
  }
  return Ok{};
}

// What a unit knows how to fill in before a call.
struct WindowInput {
  std::string_view name;
  Encoding dtype;
  int64_t rows;      // 0: any
  int64_t channels;  // 0: any
};

Status check_inputs(const Program& program, std::vector<bool>& defined) {
  const WindowInput known[] = {
      {"embeddings", Encoding::kF32, program.rows, 0},
      {"positions", Encoding::kI32, program.rows, 1},
      {"ancestors", Encoding::kI32, program.rows, program.rows},
      {"conv_gather", Encoding::kI32, program.rows, 0},
      {"selected", Encoding::kI32, program.selected, 1},
      {"row_count", Encoding::kI32, 1, 1},
  };
  std::set<std::string> names;
  for (const ValueId id : program.inputs) {
    if (!in_range(id, program.values.size())) {
      return rule_error("program.input", "inputs", "a value of the program", fmt::format("%{}", id),
                        "Declare the value.");
    }
    const Value& value = program.value(id);
    const auto subject = fmt::format("input %{} '{}'", id, value.name);
    const auto* row = std::find_if(std::begin(known), std::end(known),
                                   [&](const auto& entry) { return entry.name == value.name; });
    if (row == std::end(known) || !names.insert(value.name).second) {
      return rule_error("program.input", subject,
                        "embeddings, positions, ancestors, conv_gather, selected or row_count, "
                        "each at most once",
                        fmt::format("'{}'", value.name), "Units fill in these inputs by name.");
    }
    const Shape expected{row->rows, row->channels == 0 ? value.shape.channels : row->channels};
    if (value.shape != expected || value.dtype != row->dtype) {
      return rule_error(
          "program.input", subject,
          fmt::format("{}{}", espalier::name_of(row->dtype), shape_text(expected)),
          fmt::format("{}{}", espalier::name_of(value.dtype), shape_text(value.shape)),
          "The window's inputs have the shapes of program.h.");
    }
    defined[static_cast<size_t>(id)] = true;
  }
  return Ok{};
}

Status check_operand_ids(const Program& program, const Op& op, const std::vector<bool>& defined) {
  for (const ValueId id : op.inputs) {
    if (!in_range(id, program.values.size())) {
      return rule_error("op.input", "input", "a value of the program", fmt::format("%{}", id),
                        "Declare the value.");
    }
    if (!defined[static_cast<size_t>(id)]) {
      return rule_error("op.order", "input " + value_text(program, id), "a value defined before",
                        "one that no earlier op or input defines",
                        "Put the op that makes it first.");
    }
  }
  for (const WeightId id : op.weights) {
    if (!in_range(id, program.weights.size())) {
      return rule_error("op.weight", "weight", "a weight of the program", fmt::format("@{}", id),
                        "Declare the weight.");
    }
  }
  if (op.state != kNone && !in_range(op.state, program.states.size())) {
    return rule_error("op.state", "state", "a state of the program", fmt::format("${}", op.state),
                      "Declare the state.");
  }
  return Ok{};
}

Status check_outputs_of(const Program& program, const Op& op, std::vector<bool>& defined) {
  ASSIGN_OR_RETURN(const auto outputs, check_op({program, op}));
  if (op.outputs.size() != outputs.size()) {
    return rule_error("op.outputs", "number of outputs", fmt::format("{}", outputs.size()),
                      fmt::format("{}", op.outputs.size()), "Name every output once.");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ValueId id = op.outputs[i];
    if (!in_range(id, program.values.size())) {
      return rule_error("op.output", "output", "a value of the program", fmt::format("%{}", id),
                        "Declare the value.");
    }
    const auto subject =
        fmt::format("output '{}' = %{} '{}'", outputs[i].name, id, program.value(id).name);
    if (defined[static_cast<size_t>(id)]) {
      return rule_error("op.once", subject, "a value that nothing else defines",
                        "one that is defined already", "Give every op outputs of its own.");
    }
    const Value& value = program.value(id);
    if (value.shape != outputs[i].shape || value.dtype != outputs[i].dtype) {
      return rule_error(
          "op.shape", subject,
          fmt::format("{}{}", espalier::name_of(outputs[i].dtype), shape_text(outputs[i].shape)),
          fmt::format("{}{}", espalier::name_of(value.dtype), shape_text(value.shape)),
          "Declare the output with the shape that the op gives.");
    }
    defined[static_cast<size_t>(id)] = true;
  }
  return Ok{};
}

// kv_write once per state and before the attention that reads it; short_conv once per state.
Status check_state_use(const Program& program, const Op& op, std::vector<bool>& written) {
  if (op.state == kNone) return Ok{};
  const auto subject =
      fmt::format("state '{}'", program.states[static_cast<size_t>(op.state)].name);
  std::vector<bool>::reference state_written = written[static_cast<size_t>(op.state)];
  if (op.kind == OpKind::kAttention) {
    if (state_written) return Ok{};
    return rule_error("attention.order", subject, "a kv_write before the attention", "none",
                      "A row attends to itself, so its K and V are written first.");
  }
  if (state_written) {
    return rule_error("state.once", subject, "one op that writes it", "a second one",
                      "Give every layer a state of its own.");
  }
  state_written = true;
  return Ok{};
}

Status check_ops(const Program& program, std::vector<bool>& defined) {
  std::vector<bool> written(program.states.size());
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const auto context = fmt::format("op {} ({})", i, op_info(op.kind).name);
    Status status = check_operand_ids(program, op, defined);
    if (status.ok()) status = check_outputs_of(program, op, defined);
    if (status.ok()) status = check_state_use(program, op, written);
    if (!status.ok()) return status.error().with_context(context);
  }
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i]) continue;
    return rule_error("state.unused", fmt::format("state '{}'", program.states[i].name),
                      "an op that writes it", "none", "Remove the state.");
  }
  return Ok{};
}

Status check_outputs(const Program& program, const std::vector<bool>& defined) {
  for (const ValueId id : program.outputs) {
    if (!in_range(id, program.values.size()) || !defined[static_cast<size_t>(id)]) {
      return rule_error("program.output", "outputs", "a value that the program computes",
                        fmt::format("%{}", id), "Name a defined value.");
    }
  }
  const auto dtype = [&program](size_t i) { return program.value(program.outputs[i]).dtype; };
  const size_t count = output_count(program.head);
  const bool fits = program.outputs.size() >= count && (count < 1 || dtype(0) == Encoding::kF32) &&
                    (count < 2 || dtype(1) == Encoding::kI32);
  if (!fits) {
    static constexpr std::array<const char*, 3> kExpected = {"", "logits (f32)",
                                                             "max (f32) and index (i32)"};
    return rule_error("program.head", "outputs", kExpected[count],
                      fmt::format("{} values", program.outputs.size()),
                      "The first outputs are those of the program's head.");
  }
  for (const ValueId id : program.taps()) {
    const Value& value = program.value(id);
    if (value.dtype == Encoding::kF32 && value.shape.rows == program.rows) continue;
    return rule_error("program.tap", fmt::format("output %{}", id),
                      fmt::format("f32 rows of the window, [{}, ...]", program.rows),
                      fmt::format("{} {}", name_of(value.dtype), shape_text(value.shape)),
                      "Tap a value of the layers.");
  }
  return Ok{};
}

Status check_same_states(const Program& first, const Program& other) {
  const auto same = [](const State& a, const State& b) {
    return a.name == b.name && a.kind == b.kind && a.shape.channels == b.shape.channels &&
           (a.kind == StateKind::kKeyValue || a.shape.rows == b.shape.rows);
  };
  if (std::equal(first.states.begin(), first.states.end(), other.states.begin(), other.states.end(),
                 same)) {
    return Ok{};
  }
  return rule_error("set.states", "states", fmt::format("those of function '{}'", first.name),
                    "others", "Functions of one set share their states by index.");
}

}  // namespace

Status validate(const Program& program) {
  RETURN_IF_ERROR(check_sizes(program));
  RETURN_IF_ERROR(check_values(program));
  RETURN_IF_ERROR(check_weights(program));
  RETURN_IF_ERROR(check_states(program));
  std::vector<bool> defined(program.values.size());
  RETURN_IF_ERROR(check_inputs(program, defined));
  RETURN_IF_ERROR(check_ops(program, defined));
  return check_outputs(program, defined);
}

Status validate(const ProgramSet& programs) {
  if (programs.functions.empty()) {
    return rule_error("set.empty", "program set", "at least one function", "none",
                      "Build one program per window, bucket and head.");
  }
  std::set<std::string> names;
  for (const Program& program : programs.functions) {
    const auto context = fmt::format("function '{}'", program.name);
    if (!names.insert(program.name).second) {
      return rule_error("set.name", context, "a name of its own", "the same name twice",
                        "Name functions by window, bucket and head.");
    }
    Status status = validate(program);
    if (status.ok()) status = check_same_states(programs.functions.front(), program);
    if (!status.ok()) return status.error().with_context(context);
  }
  return Ok{};
}

Status validate_weights(const Program& program, const Weights& weights) {
  for (const Weight& weight : program.weights) {
    RETURN_IF_ERROR(weight_view(weight, weights));
  }
  return Ok{};
}

}  // namespace espalier::program
