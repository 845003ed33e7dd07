#include "espalier/units/reference/plan.h"

#include <algorithm>

namespace espalier::units::reference {
namespace {

using program::Op;
using program::OpKind;
using program::Program;
using program::ValueId;

// A piece of the fp32 arena, lent to one value after another.
struct Piece {
  int64_t elements = 0;
  bool lent = false;
};

int64_t element_count(const Program& program, ValueId id) {
  const auto& shape = program.value(id).shape;
  return shape.rows * shape.channels;
}

// The last op that reads each value; values that nobody reads end with the op that makes them.
std::vector<size_t> last_uses(const Program& program) {
  std::vector<size_t> last(program.values.size(), 0);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    for (const ValueId id : program.ops[i].outputs) last[static_cast<size_t>(id)] = i;
    for (const ValueId id : program.ops[i].inputs) last[static_cast<size_t>(id)] = i;
  }
  for (const ValueId id : program.outputs) last[static_cast<size_t>(id)] = program.ops.size();
  return last;
}

size_t lend(std::vector<Piece>& pieces, int64_t elements) {
  auto piece = std::find_if(pieces.begin(), pieces.end(), [](const Piece& p) { return !p.lent; });
  if (piece == pieces.end()) piece = pieces.insert(piece, Piece{});
  piece->lent = true;
  piece->elements = std::max(piece->elements, elements);
  return static_cast<size_t>(piece - pieces.begin());
}

RowKind rows_of_input(std::string_view name) {
  if (name == "selected") return RowKind::kSelected;
  return name == "row_count" ? RowKind::kOne : RowKind::kWindow;
}

RowKind rows_of_result(const Op& op, const std::vector<ValuePlan>& values) {
  if (op.kind == OpKind::kMeanPool) return RowKind::kOne;
  const size_t source = op.kind == OpKind::kGatherRows ? 1 : 0;
  return values[static_cast<size_t>(op.inputs[source])].rows;
}

class Planner {
 public:
  explicit Planner(const Program& program) : program_(program), last_use_(last_uses(program)) {}

  Plan plan() {
    plan_.values.resize(program_.values.size());
    piece_of_.resize(program_.values.size());
    for (const ValueId id : program_.inputs) place(id, rows_of_input(program_.value(id).name));
    for (size_t i = 0; i < program_.ops.size(); ++i) {
      const Op& op = program_.ops[i];
      for (const ValueId id : op.outputs) place(id, rows_of_result(op, plan_.values));
      for (const ValueId id : op.inputs) end_life(id, i);
      for (const ValueId id : op.outputs) end_life(id, i);
    }
    lay_out();
    return std::move(plan_);
  }

 private:
  bool is_float(ValueId id) const { return program_.value(id).dtype == Encoding::kF32; }

  void place(ValueId id, RowKind rows) {
    ValuePlan& value = plan_.values[static_cast<size_t>(id)];
    value.rows = rows;
    if (is_float(id)) {
      piece_of_[static_cast<size_t>(id)] = lend(pieces_, element_count(program_, id));
    } else {  // few and small: each has its own place
      value.offset = plan_.integer_count;
      plan_.integer_count += element_count(program_, id);
    }
  }

  void end_life(ValueId id, size_t op) {
    if (is_float(id) && last_use_[static_cast<size_t>(id)] == op) {
      pieces_[piece_of_[static_cast<size_t>(id)]].lent = false;
    }
  }

  void lay_out() {
    std::vector<int64_t> offsets;
    for (const Piece& piece : pieces_) {
      offsets.push_back(plan_.float_count);
      plan_.float_count += piece.elements;
    }
    for (size_t id = 0; id < plan_.values.size(); ++id) {
      if (is_float(static_cast<ValueId>(id)) && !offsets.empty()) {
        plan_.values[id].offset = offsets[piece_of_[id]];
      }
    }
  }

  const Program& program_;
  std::vector<size_t> last_use_;
  std::vector<size_t> piece_of_;  // by ValueId
  std::vector<Piece> pieces_;
  Plan plan_;
};

}  // namespace

Plan make_plan(const Program& program, const WeightTable& weights) {
  Plan plan = Planner(program).plan();
  for (const Op& op : program.ops) {
    std::vector<const Matrix*> matrices;
    for (const auto id : op.weights) {
      matrices.push_back(&weights.matrix(program.weights[static_cast<size_t>(id)]));
    }
    plan.weights.push_back(std::move(matrices));
  }
  return plan;
}

}  // namespace espalier::units::reference
