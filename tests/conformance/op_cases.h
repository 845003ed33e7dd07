// Cases of single ops (tests/golden/ops, made by torch in fp64) and a way to run any program on any
// unit, so that each unit can be compared with the cases and with the reference unit. One thread.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "espalier/base/weights.h"
#include "espalier/program/program.h"
#include "espalier/units/unit.h"

namespace espalier::conformance {

struct OpCall {
  std::vector<float> embeddings;   // [rows, hidden]
  std::vector<int32_t> positions;  // [rows]
  std::vector<int32_t> parents;    // [rows]
  std::vector<int32_t> commit;     // path that is kept after the call
};

struct OpCase {
  std::string name;
  program::Program program;
  Weights weights;                      // fp32, owned
  std::vector<OpCall> calls;            // one sequence
  std::vector<float> expected;          // max values or logits of the last call
  std::vector<int32_t> expected_index;  // argmax heads only
};

// For GoogleTest, which would print the bytes.
void PrintTo(const OpCase& op_case, std::ostream* out);

// All committed cases. A fault of the file ends the test program.
std::vector<OpCase> golden_op_cases();

struct HeadResult {
  std::vector<float> values;     // [selected, subranges or vocab]
  std::vector<int32_t> indices;  // argmax heads only
};

// Runs the calls one after another on a new state and returns the heads of the last one. Selected
// are the first rows, as many as the program has places for.
HeadResult run_program_on(units::Unit& unit, const program::Program& program,
                          const Weights& weights, const std::vector<OpCall>& calls,
                          const units::CompileOptions& options);

}  // namespace espalier::conformance
