// weight_view: the stored bytes that a program's Weight stands for, as a [rows, columns] view of
// its own. All units read weights through it, so that shapes are checked once and slices of vectors
// are known in one place.
#pragma once

#include "espalier/base/result.h"
#include "espalier/base/weights.h"
#include "espalier/program/program.h"

namespace espalier::program {

// Rows [first_row, first_row + rows) of the tensor. A tensor of n elements in one row may be read
// as n rows of one column where its encoding has no blocks (a slice of a bias). Fails where the
// tensor is missing or has another shape. The view lives as long as `weights`.
Result<TensorView> weight_view(const Weight& weight, const Weights& weights);

}  // namespace espalier::program
