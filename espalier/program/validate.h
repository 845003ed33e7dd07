// validate: whether a program means something. A unit may rely on everything checked here; a
// program that was parsed from text, or written by a new model file, is validated before any unit
// sees it. Errors name the op, the value, the shape, the rule in square brackets and the fix.
// Thread-safe.
#pragma once

#include "espalier/base/result.h"
#include "espalier/base/weights.h"
#include "espalier/program/program.h"

namespace espalier::program {

// Largest extent of a shape; products of two extents stay within 64 bits.
inline constexpr int64_t kMaxExtent = int64_t{1} << 31;
// Rows of a window: the activations of a call grow with it, and the paths of a tree with its square
// (4 MB at this height), far beyond what a call can use.
inline constexpr int64_t kMaxWindowRows = 1024;

Status validate(const Program& program);

// Every function on its own, and that all list the same states in the same order, differing only in
// the bucket; names of functions are unique.
Status validate(const ProgramSet& programs);

// Every weight's tensor is there, with the rows and columns that the program reads.
Status validate_weights(const Program& program, const Weights& weights);

}  // namespace espalier::program
