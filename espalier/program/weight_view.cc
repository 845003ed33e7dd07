#include "espalier/program/weight_view.h"

namespace espalier::program {

Result<TensorView> weight_view(const Weight& weight, const Weights& weights) {
  ASSIGN_OR_RETURN(TensorView tensor, weights.get(weight.tensor));
  const bool as_column = weight.columns == 1 && tensor.rows() == 1 &&
                         tensor.columns() == weight.tensor_rows &&
                         encoding_info(tensor.encoding).block_elements == 1;
  const bool as_matrix = tensor.rows() == weight.tensor_rows && tensor.columns() == weight.columns;
  if (!as_column && !as_matrix) {
    return Error{.what = fmt::format("tensor '{}' has the wrong shape", weight.tensor),
                 .expected = fmt::format("[{}, {}]", weight.tensor_rows, weight.columns),
                 .actual = espalier::shape_text(tensor.shape),
                 .fix = "The configuration and the weights do not belong together."};
  }
  tensor.shape = {weight.tensor_rows, weight.columns};
  return tensor.row_range(weight.first_row, weight.rows);
}

}  // namespace espalier::program
