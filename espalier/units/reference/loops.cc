#include "espalier/units/reference/loops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "espalier/base/check.h"

namespace espalier::units::reference {
namespace {

// Sum of a[i] * b[i] in fp64. Eight partial sums, so that a compiler can use vector registers
// without changing the order of additions; the order depends on n alone.
double dot(const float* a, const float* b, int64_t n) {
  constexpr int64_t kLanes = 8;
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  double sum = 0;
  for (const double lane_sum : sums) sum += lane_sum;
  for (; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

int64_t rows_of_input(const Call& call) { return call.inputs[0].rows; }
int64_t outputs_of_weight(const Call& call) { return call.weights[0]->rows(); }
int64_t one_item(const Call&) { return 1; }

// Items: outputs, so that a weight row is read once for all rows.
void linear(const Call& call, int64_t first, int64_t last) {
  const Tensor& x = call.inputs[0];
  const Tensor& y = call.outputs[0];
  const float* bias = call.weights.size() > 1 ? call.weights[1]->vector() : nullptr;
  for (int64_t n = first; n < last; ++n) {
    const float* weight = call.weights[0]->row(n, call.weight_row);
    for (int64_t r = 0; r < x.rows; ++r) {
      const double offset = bias != nullptr ? static_cast<double>(bias[n]) : 0.0;
      y.row(r)[n] = static_cast<float>(dot(x.row(r), weight, x.channels) + offset);
    }
  }
}

void rms_norm(const Call& call, int64_t first, int64_t last) {
  const Tensor& x = call.inputs[0];
  const float* weight = call.weights[0]->vector();
  const int64_t group = call.weights[0]->columns();
  const double epsilon = call.op.number("epsilon");
  for (int64_t r = first; r < last; ++r) {
    for (int64_t start = 0; start < x.channels; start += group) {
      const float* in = x.row(r) + start;
      float* out = call.outputs[0].row(r) + start;
      const double mean_square = dot(in, in, group) / static_cast<double>(group);
      const double factor = 1.0 / std::sqrt(mean_square + epsilon);
      for (int64_t c = 0; c < group; ++c) out[c] = static_cast<float>(in[c] * factor * weight[c]);
    }
  }
}

void layer_norm(const Call& call, int64_t first, int64_t last) {
  const Tensor& x = call.inputs[0];
  const float* weight = call.weights[0]->vector();
  const float* bias = call.weights[1]->vector();
  const double epsilon = call.op.number("epsilon");
  const auto count = static_cast<double>(x.channels);
  for (int64_t r = first; r < last; ++r) {
    const float* in = x.row(r);
    double mean = 0;
    for (int64_t c = 0; c < x.channels; ++c) mean += in[c] / count;
    double variance = 0;
    for (int64_t c = 0; c < x.channels; ++c) variance += (in[c] - mean) * (in[c] - mean) / count;
    const double factor = 1.0 / std::sqrt(variance + epsilon);
    for (int64_t c = 0; c < x.channels; ++c) {
      call.outputs[0].row(r)[c] = static_cast<float>((in[c] - mean) * factor * weight[c] + bias[c]);
    }
  }
}

void rope(const Call& call, int64_t first, int64_t last) {
  const Tensor& x = call.inputs[0];
  const int64_t head_dim = call.op.integer("head_dim");
  const auto& frequencies = call.op.list("frequencies");
  const double scale = call.op.number("scale");
  const auto pairs = static_cast<int64_t>(frequencies.size());
  const bool interleaved = call.op.text("style") == "interleaved";
  for (int64_t r = first; r < last; ++r) {
    const float* in = x.row(r);
    float* out = call.outputs[0].row(r);
    std::copy_n(in, x.channels, out);  // channels beyond the pairs pass through
    const double position = *call.inputs[1].integer_row(r);
    for (int64_t i = 0; i < pairs; ++i) {
      // Rounded to fp32 as in the code that models are trained with: without it the error against
      // transformers grows with the position (SmolLM2-135M: 1.6e-5 at 1800, against 3e-6 with it).
      const double angle = static_cast<float>(position * frequencies[static_cast<size_t>(i)]);
      const double cosine = std::cos(angle) * scale;
      const double sine = std::sin(angle) * scale;
      const int64_t low = interleaved ? 2 * i : i;
      const int64_t high = interleaved ? 2 * i + 1 : i + pairs;
      for (int64_t head = 0; head < x.channels; head += head_dim) {
        const double a = in[head + low];
        const double b = in[head + high];
        out[head + low] = static_cast<float>(a * cosine - b * sine);
        out[head + high] = static_cast<float>(b * cosine + a * sine);
      }
    }
  }
}

// Row `index` of Z: the state's rows, then the window's.
const float* conv_row(const Call& call, int64_t index, int64_t state_rows) {
  const int64_t channels = call.inputs[0].channels;
  if (index < state_rows) return call.state->conv.data() + index * channels;
  return call.inputs[0].row(index - state_rows);
}

void short_conv(const Call& call, int64_t first, int64_t last) {
  const Tensor& z = call.inputs[0];
  const Tensor& gather = call.inputs[1];
  const float* weight = call.weights[0]->vector();  // [channels, kernel]
  const float* bias = call.weights.size() > 1 ? call.weights[1]->vector() : nullptr;
  const int64_t kernel = call.weights[0]->columns();
  for (int64_t r = first; r < last; ++r) {
    std::copy_n(z.row(r), z.channels, call.state->staged_conv.data() + r * z.channels);
    for (int64_t c = 0; c < z.channels; ++c) {
      const float* taps = weight + c * kernel;
      double sum = bias != nullptr ? static_cast<double>(bias[c]) : 0.0;
      sum += static_cast<double>(taps[kernel - 1]) * static_cast<double>(z.row(r)[c]);
      for (int64_t j = 1; j < kernel; ++j) {
        const float* earlier = conv_row(call, gather.integer_row(r)[j - 1], kernel - 1);
        sum += static_cast<double>(taps[kernel - 1 - j]) * static_cast<double>(earlier[c]);
      }
      call.outputs[0].row(r)[c] = static_cast<float>(sum);
    }
  }
}

void kv_write(const Call& call, int64_t first, int64_t last) {
  const int64_t channels = call.inputs[0].channels;
  for (int64_t r = first; r < last; ++r) {
    std::copy_n(call.inputs[0].row(r), channels, call.state->staged_k.data() + r * channels);
    std::copy_n(call.inputs[1].row(r), channels, call.state->staged_v.data() + r * channels);
  }
}

// Calls visit(K row, V row) for what window row `r` sees, in the order of positions. Rows are
// [channels].
template <typename Visit>
void for_each_visible(const Call& call, int64_t r, int64_t channels, Visit visit) {
  const StateRows& state = *call.state;
  for (int64_t p = 0; p < call.committed; ++p) {
    visit(state.k.data() + p * channels, state.v.data() + p * channels);
  }
  for (int64_t w = 0; w < call.inputs[0].rows; ++w) {
    if (call.inputs[1].integer_row(r)[w] == 0) continue;
    visit(state.staged_k.data() + w * channels, state.staged_v.data() + w * channels);
  }
}

int64_t heads_of_rows(const Call& call) { return call.inputs[0].rows * call.op.integer("heads"); }

// Items: row * heads + head.
void attention(const Call& call, int64_t first, int64_t last) {
  const int64_t heads = call.op.integer("heads");
  const int64_t kv_heads = call.op.integer("kv_heads");
  const int64_t head_dim = call.op.integer("head_dim");
  const double scale = call.op.number("scale");
  const std::span<double> mixed = call.doubles.first(static_cast<size_t>(head_dim));
  const std::span<double> scores = call.doubles.subspan(static_cast<size_t>(head_dim));
  for (int64_t item = first; item < last; ++item) {
    const int64_t r = item / heads;
    const int64_t head = item % heads;
    const int64_t kv_offset = head / (heads / kv_heads) * head_dim;
    const float* query = call.inputs[0].row(r) + head * head_dim;

    size_t count = 0;
    double highest = -std::numeric_limits<double>::infinity();
    for_each_visible(call, r, kv_heads * head_dim, [&](const float* k, const float*) {
      scores[count] = dot(query, k + kv_offset, head_dim) * scale;
      highest = std::max(highest, scores[count++]);
    });

    double total = 0;
    count = 0;
    std::fill(mixed.begin(), mixed.end(), 0.0);
    for_each_visible(call, r, kv_heads * head_dim, [&](const float*, const float* v) {
      const double share = std::exp(scores[count++] - highest);
      total += share;
      for (int64_t c = 0; c < head_dim; ++c) {
        mixed[static_cast<size_t>(c)] += share * static_cast<double>(v[kv_offset + c]);
      }
    });
    for (int64_t c = 0; c < head_dim; ++c) {
      call.outputs[0].row(r)[head * head_dim + c] =
          static_cast<float>(mixed[static_cast<size_t>(c)] / total);
    }
  }
}

// y[r, c] = function(a[r, c], b[r, c]); b is a where the op has one input.
template <typename Function>
void elementwise(const Call& call, int64_t first, int64_t last, Function function) {
  const Tensor& a = call.inputs.front();
  const Tensor& b = call.inputs.back();
  for (int64_t r = first; r < last; ++r) {
    for (int64_t c = 0; c < a.channels; ++c) {
      const double y = function(static_cast<double>(a.row(r)[c]), static_cast<double>(b.row(r)[c]));
      call.outputs[0].row(r)[c] = static_cast<float>(y);
    }
  }
}

void gated_silu(const Call& call, int64_t first, int64_t last) {
  elementwise(call, first, last,
              [](double gate, double up) { return gate / (1.0 + std::exp(-gate)) * up; });
}

void add(const Call& call, int64_t first, int64_t last) {
  elementwise(call, first, last, [](double a, double b) { return a + b; });
}

void mul(const Call& call, int64_t first, int64_t last) {
  elementwise(call, first, last, [](double a, double b) { return a * b; });
}

void gelu(const Call& call, int64_t first, int64_t last) {
  constexpr double kSqrt2OverPi = 0.79788456080286535588;
  constexpr double kSqrtHalf = 0.70710678118654752440;
  const auto by_tanh = [](double x, double) {
    return 0.5 * x * (1.0 + std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x)));
  };
  const auto by_erf = [](double x, double) { return 0.5 * x * (1.0 + std::erf(x * kSqrtHalf)); };
  if (call.op.text("approximation") == "tanh") {
    elementwise(call, first, last, by_tanh);
  } else {
    elementwise(call, first, last, by_erf);
  }
}

void gather_rows(const Call& call, int64_t first, int64_t last) {
  const Tensor& x = call.inputs[0];
  for (int64_t s = first; s < last; ++s) {
    std::copy_n(x.row(*call.inputs[1].integer_row(s)), x.channels, call.outputs[0].row(s));
  }
}

int64_t rows_of_output(const Call& call) { return call.outputs[0].rows; }
int64_t subranges_of_rows(const Call& call) {
  return call.outputs[0].rows * call.outputs[0].channels;
}

// Items: row * subranges + subrange. The logit is rounded to fp32 first, so that the argmax is that
// of the logits that head_logits gives.
void head_argmax(const Call& call, int64_t first, int64_t last) {
  const Tensor& x = call.inputs[0];
  const Matrix& weight = *call.weights[0];
  const int64_t subrange = call.op.integer("subrange");
  const int64_t subranges = call.outputs[0].channels;
  for (int64_t item = first; item < last; ++item) {
    const int64_t s = item / subranges;
    const int64_t n = item % subranges;
    const int64_t size = std::min(subrange, weight.rows() - n * subrange);
    float best = -std::numeric_limits<float>::infinity();
    int32_t best_index = 0;
    for (int64_t i = 0; i < size; ++i) {
      const float* row = weight.row(n * subrange + i, call.weight_row);
      const auto logit = static_cast<float>(dot(x.row(s), row, x.channels));
      if (logit > best) {
        best = logit;
        best_index = static_cast<int32_t>(i);
      }
    }
    call.outputs[0].row(s)[n] = best;
    call.outputs[1].integers[s * subranges + n] = best_index;
  }
}

void mean_pool(const Call& call, int64_t, int64_t) {
  const Tensor& x = call.inputs[0];
  const int64_t count = *call.inputs[1].integer_row(0);
  for (int64_t c = 0; c < x.channels; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < count; ++r) sum += static_cast<double>(x.row(r)[c]);
    call.outputs[0].row(0)[c] = static_cast<float>(sum / static_cast<double>(count));
  }
}

using program::OpKind;

// Rows in the order of OpKind. A head of logits is a linear layer.
constexpr std::array kLoops = {
    Loop{OpKind::kLinear, outputs_of_weight, linear},
    Loop{OpKind::kRmsNorm, rows_of_input, rms_norm},
    Loop{OpKind::kLayerNorm, rows_of_input, layer_norm},
    Loop{OpKind::kRope, rows_of_input, rope},
    Loop{OpKind::kShortConv, rows_of_input, short_conv},
    Loop{OpKind::kAttention, heads_of_rows, attention},
    Loop{OpKind::kKvWrite, rows_of_input, kv_write},
    Loop{OpKind::kGatedSilu, rows_of_input, gated_silu},
    Loop{OpKind::kGelu, rows_of_input, gelu},
    Loop{OpKind::kAdd, rows_of_input, add},
    Loop{OpKind::kMul, rows_of_input, mul},
    Loop{OpKind::kGatherRows, rows_of_output, gather_rows},
    Loop{OpKind::kHeadArgmax, subranges_of_rows, head_argmax},
    Loop{OpKind::kHeadLogits, outputs_of_weight, linear},
    Loop{OpKind::kMeanPool, one_item, mean_pool},
};

}  // namespace

const Loop& loop_of(OpKind kind) {
  const Loop& loop = kLoops.at(static_cast<size_t>(kind));
  CHECK(loop.kind == kind);
  return loop;
}

}  // namespace espalier::units::reference
