// Builder: writes one program, op by op, with every op checked as it is added. Outputs get their
// shapes from the op table; weights and states that are named twice are the same weight or state.
// Misuse is our bug and dies with the broken rule; what a checkpoint can get wrong is checked
// before (models/) and after (program/validate.h). Used by one thread; finish() ends it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/program/program.h"

namespace espalier::program {

class Builder {
 public:
  Builder(std::string name, int64_t rows, int64_t kv_rows, int64_t selected, Head head);

  int64_t rows() const { return program_.rows; }          // T
  int64_t selected() const { return program_.selected; }  // S
  Head head() const { return program_.head; }

  // Prefix of the names of values from here on ("layers.3.").
  void scope(std::string prefix) { scope_ = std::move(prefix); }

  ValueId input(std::string name, Shape shape, Encoding dtype);
  void output(ValueId value);

  WeightId matrix(const std::string& tensor, int64_t rows, int64_t columns);
  WeightId vector(const std::string& tensor, int64_t size);
  // Rows [first_row, first_row + rows) of a tensor of `tensor_rows` rows.
  WeightId matrix_rows(const std::string& tensor, int64_t tensor_rows, int64_t first_row,
                       int64_t rows, int64_t columns);
  // Elements [first, first + size) of a vector of `tensor_size` elements, as rows of one column.
  WeightId vector_part(const std::string& tensor, int64_t tensor_size, int64_t first, int64_t size);

  StateId key_value(const std::string& name, int64_t channels);
  StateId short_conv_rows(const std::string& name, int64_t kernel, int64_t channels);

  // One method per op; program/program.h says what each computes. `name` names the output.
  ValueId linear(std::string name, ValueId x, WeightId weight, WeightId bias = kNone);
  ValueId rms_norm(std::string name, ValueId x, WeightId weight, double epsilon);
  ValueId layer_norm(std::string name, ValueId x, WeightId weight, WeightId bias, double epsilon);
  ValueId rope(std::string name, ValueId x, ValueId positions, int64_t head_dim, bool interleaved,
               const std::vector<double>& frequencies, double scale);
  ValueId short_conv(std::string name, ValueId z, ValueId conv_gather, StateId state,
                     WeightId weight, WeightId bias = kNone);
  void kv_write(ValueId k, ValueId v, StateId state);
  ValueId attention(std::string name, ValueId q, ValueId ancestors, StateId state, int64_t heads,
                    int64_t kv_heads, int64_t head_dim, double scale);
  ValueId gated_silu(std::string name, ValueId gate, ValueId up);
  ValueId gelu(std::string name, ValueId x, bool tanh_form);
  ValueId add(std::string name, ValueId a, ValueId b);
  ValueId mul(std::string name, ValueId a, ValueId b);
  ValueId gather_rows(std::string name, ValueId x, ValueId selected);
  // Adds the op and marks its results as the program's outputs.
  void head_argmax(ValueId x, WeightId weight, int64_t subrange);
  void head_logits(ValueId x, WeightId weight);
  ValueId mean_pool(std::string name, ValueId x, ValueId row_count);

  // The finished program, validated.
  Program finish();

 private:
  std::vector<ValueId> append(Op op, std::vector<std::string> output_names);
  ValueId append_one(Op op, std::string name);

  Program program_;
  std::string scope_;
};

}  // namespace espalier::program
