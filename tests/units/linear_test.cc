// PackedLinear and the linear kernels: the portable set against the definition in linear.h computed
// from the stored bytes, every other set against the portable one with ==, and all of it against
// fp64.
#include "espalier/units/cpu/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "espalier/base/dequantize.h"
#include "espalier/units/cpu/kernels.h"
#include "tests/units/emulated_sets.h"
#include "tests/units/random_matrix.h"

namespace espalier::units::cpu {
namespace {

std::vector<float> random_rows(int64_t rows, int64_t columns, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(rows * columns));
  for (float& v : x) v = normal(random);
  return x;
}

PackedLinear pack(const TensorView& view, FloatMode floats = FloatMode::kInt8Channel) {
  auto packed = PackedLinear::pack(view, 0, view.rows(), floats);
  EXPECT_TRUE(packed.ok());
  return std::move(packed).value();
}

std::vector<float> multiply(const KernelSet& set, const PackedLinear& weights,
                            const std::vector<float>& x, int planes) {
  const int64_t columns = weights.columns(), rows = static_cast<int64_t>(x.size()) / columns;
  auto activations = Activations::create(rows, columns, weights.activation_planes(planes)).value();
  set.quantize_rows(x.data(), columns, 0, rows, activations);
  std::vector<float> y(static_cast<size_t>(rows * weights.rows()), -1.0f);
  set.linear(weights, activations, rows, 0, weights.panel_count(), y.data(), weights.rows());
  return y;
}

// Equal bits, except that a NaN equals any NaN.
void expect_same(const std::vector<float>& a, const std::vector<float>& b,
                 const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(a[i]), std::bit_cast<uint32_t>(b[i]))
        << what << ": element " << i << " of " << a.size() << ": " << a[i] << " against " << b[i];
  }
}

std::vector<const KernelSet*> supported_sets() {
  std::vector<const KernelSet*> sets(emulated_sets().begin(), emulated_sets().end());
  for (const KernelSet* set : all_kernel_sets()) {
    if (set->supported()) sets.push_back(set);
  }
  return sets;
}

// --- The definition, written once more from the text of linear.h
// ---------------------------------------------

struct QuantizedRow {
  std::vector<int64_t> a;
  std::vector<float> scales;
};

QuantizedRow quantize_by_definition(const float* x, int64_t columns, int planes) {
  QuantizedRow row;
  for (int64_t first = 0; first < columns; first += kBlockElements) {
    const int64_t last = std::min(columns, first + kBlockElements);
    float absmax = 0;
    bool finite = true;
    for (int64_t k = first; k < last; ++k) {
      absmax = std::max(absmax, std::fabs(x[k]));
      finite = finite && std::isfinite(x[k]);
    }
    float scale = absmax / (planes == 2 ? 32639.0f : 127.0f);
    if (absmax < 0x1p-100f) scale = 0;
    if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
    for (int64_t k = first; k < last; ++k) {
      const bool zero = scale == 0 || !finite;
      row.a.push_back(zero ? 0 : std::llrint(static_cast<double>(x[k] / scale)));
    }
    row.scales.push_back(scale);
  }
  return row;
}

float group_output_by_definition(const TensorView& weights, int64_t output,
                                 const QuantizedRow& row) {
  const int64_t columns = weights.columns(), elements = group_elements(weights.encoding);
  float y = 0;
  for (int64_t first = 0; first < columns; first += kBlockElements) {
    float acc = 0;
    for (int64_t k = first; k < std::min(columns, first + kBlockElements); k += elements) {
      QuantizedGroup group;
      decode_group(weights, output, k / elements, group);
      int64_t dot = 0, sum = 0;
      for (int64_t i = 0; i < elements; ++i) {
        dot += group.q[i] * row.a[static_cast<size_t>(k + i)];
        sum += row.a[static_cast<size_t>(k + i)];
      }
      acc = std::fma(group.scale, static_cast<float>(dot), acc);
      if (!(group.offset == 0 && std::signbit(group.offset))) {
        acc = std::fma(group.offset, static_cast<float>(sum), acc);
      }
    }
    y = std::fma(acc, row.scales[static_cast<size_t>(first / kBlockElements)], y);
  }
  return y;
}

float int8_output_by_definition(const std::vector<float>& weights, const QuantizedRow& row) {
  float absmax = 0;
  for (const float w : weights) absmax = std::max(absmax, std::fabs(w));
  const float scale = absmax / 127.0f;
  float y = 0;
  const auto columns = static_cast<int64_t>(weights.size());
  for (int64_t first = 0; first < columns; first += kBlockElements) {
    int64_t dot = 0;
    for (int64_t k = first; k < std::min(columns, first + kBlockElements); ++k) {
      const auto i = static_cast<size_t>(k);
      const int64_t q = absmax == 0 ? 0 : std::llrint(static_cast<double>(weights[i] / scale));
      dot += q * row.a[i];
    }
    y = std::fma(static_cast<float>(dot), row.scales[static_cast<size_t>(first / kBlockElements)],
                 y);
  }
  return y * scale;
}

// Groups of 64 k.
float grouped_output_by_definition(const std::vector<float>& weights, const QuantizedRow& row) {
  const auto columns = static_cast<int64_t>(weights.size());
  float y = 0;
  for (int64_t first = 0; first < columns; first += kBlockElements) {
    float total = 0;
    for (int64_t group = first; group < std::min(columns, first + kBlockElements); group += 64) {
      float absmax = 0;
      for (int64_t k = group; k < std::min(columns, group + 64); ++k)
        absmax = std::max(absmax, std::fabs(weights[static_cast<size_t>(k)]));
      const float scale = absmax / 127.0f;
      int64_t dot = 0;
      for (int64_t k = group; k < std::min(columns, group + 64); ++k) {
        const auto i = static_cast<size_t>(k);
        dot += absmax == 0 ? 0 : std::llrint(static_cast<double>(weights[i] / scale)) * row.a[i];
      }
      total = std::fma(scale, static_cast<float>(dot), total);
    }
    y = std::fma(total, row.scales[static_cast<size_t>(first / kBlockElements)], y);
  }
  return y;
}

std::vector<float> multiply_by_definition(const TensorView& weights, FloatMode floats,
                                          const std::vector<float>& x, int planes) {
  const int64_t columns = weights.columns(), rows = static_cast<int64_t>(x.size()) / columns;
  std::vector<float> y, dequantized(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r) {
    const QuantizedRow row = quantize_by_definition(x.data() + r * columns, columns, planes);
    for (int64_t n = 0; n < weights.rows(); ++n) {
      if (group_elements(weights.encoding) > 0) {
        y.push_back(group_output_by_definition(weights, n, row));
      } else {
        dequantize(weights.row_range(n, 1), dequantized);
        y.push_back(floats == FloatMode::kInt8Groups
                        ? grouped_output_by_definition(dequantized, row)
                        : int8_output_by_definition(dequantized, row));
      }
    }
  }
  return y;
}

// --- Tests
// -----------------------------------------------------------------------------------------------------

struct Case {
  Matrix matrix;
  FloatMode floats;
};

// One matrix of every encoding and arithmetic, of about `rows` x `columns`.
std::vector<Case> every_form(int64_t rows, int64_t columns, std::mt19937_64& random) {
  std::vector<Case> cases;
  for (const HalfFields& fields : block_encodings()) {
    const int64_t unit = encoding_info(fields.encoding).block_elements;
    const int64_t whole = (columns + unit - 1) / unit * unit;
    cases.push_back({random_blocks(fields, rows, whole, random), FloatMode::kInt8Channel});
  }
  for (const Affine& affine : affine_encodings()) {
    const int64_t unit = encoding_info(affine.encoding).block_elements;
    const int64_t whole = (columns + unit - 1) / unit * unit;
    cases.push_back({affine_matrix(affine, rows, whole, random), FloatMode::kInt8Channel});
  }
  for (const Encoding encoding : {Encoding::kF32, Encoding::kF16, Encoding::kBF16}) {
    for (const FloatMode floats :
         {FloatMode::kInt8Channel, FloatMode::kInt8Groups, FloatMode::kKeep}) {
      cases.push_back({float_matrix(encoding, rows, columns, random), floats});
    }
  }
  return cases;
}

std::string describe(const Case& c, int64_t rows, int planes) {
  return fmt::format("{} {} floats={} rows={} planes={}", name_of(c.matrix.view.encoding),
                     shape_text(c.matrix.view.shape), static_cast<int>(c.floats), rows, planes);
}

TEST(Linear, PortableKernelsComputeTheDefinitionExactly) {
  std::mt19937_64 random(1);
  for (const auto& [outputs, columns] :
       {std::pair<int64_t, int64_t>{5, 40}, {33, 96}, {16, 576}, {3, 1536}}) {
    for (const Case& c : every_form(outputs, columns, random)) {
      if (c.floats == FloatMode::kKeep) continue;
      for (const int planes : {1, 2}) {
        const auto x = random_rows(3, c.matrix.view.columns(), random);
        expect_same(multiply(kPortableKernels, pack(c.matrix.view, c.floats), x, planes),
                    multiply_by_definition(c.matrix.view, c.floats, x, planes),
                    describe(c, 3, planes));
      }
    }
  }
}

TEST(Linear, EverySetEqualsThePortableOneBitForBit) {
  std::mt19937_64 random(2);
  const std::vector<int64_t> row_counts = {1,  2,  3,  4,  5,  6,  7,   8,  11,
                                           12, 13, 17, 31, 64, 65, 130, 200};
  for (int round = 0; round < 17; ++round) {
    const auto outputs = static_cast<int64_t>(1 + random() % 70);
    const auto columns = static_cast<int64_t>(1 + random() % (round % 2 == 0 ? 130 : 1300));
    const int64_t rows = row_counts[static_cast<size_t>(round)];
    for (const Case& c : every_form(outputs, columns, random)) {
      const PackedLinear weights = pack(c.matrix.view, c.floats);
      const auto x = random_rows(rows, weights.columns(), random);
      for (const int planes : {1, 2}) {
        const auto expected = multiply(kPortableKernels, weights, x, planes);
        for (const KernelSet* set : supported_sets()) {
          expect_same(multiply(*set, weights, x, planes), expected,
                      std::string(set->name) + " " + describe(c, rows, planes));
        }
      }
    }
  }
}

TEST(Linear, EverySetEqualsThePortableOneAtTheExtremes) {
  std::mt19937_64 random(3);
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  for (const Case& c : every_form(20, 1100, random)) {
    const PackedLinear weights = pack(c.matrix.view, c.floats);
    const int64_t columns = weights.columns();
    std::vector<float> x;
    for (const float value : {0.0f, -0.0f, 1.0f, -1.0f, 1e-30f, 1e-38f, 1e-45f, largest, -largest,
                              infinity, std::numeric_limits<float>::quiet_NaN()}) {
      x.insert(x.end(), static_cast<size_t>(columns), value);
    }
    for (const int planes : {1, 2}) {
      const auto expected = multiply(kPortableKernels, weights, x, planes);
      for (const KernelSet* set : supported_sets()) {
        expect_same(multiply(*set, weights, x, planes), expected,
                    std::string(set->name) + " " + describe(c, 11, planes));
      }
    }
  }
}

// The largest sums there are: every weight and every activation at an end of its range.
TEST(Linear, TheLargestSumsDoNotOverflow) {
  for (const float sign : {1.0f, -1.0f}) {
    Matrix q8;
    const int64_t columns = 65536;
    for (int64_t block = 0; block < columns / 32; ++block) {
      std::byte bytes[34];
      std::memset(bytes, sign > 0 ? 127 : 128, sizeof(bytes));
      put_half(0.001f, bytes);
      q8.bytes.insert(q8.bytes.end(), bytes, bytes + 34);
    }
    q8.view = {Encoding::kQ8_0, {1, columns}, q8.bytes};
    Matrix f32;
    f32.bytes.resize(static_cast<size_t>(columns) * 4);
    for (int64_t k = 0; k < columns; ++k) {
      const float value = sign * 0.5f;
      std::memcpy(&f32.bytes[static_cast<size_t>(k) * 4], &value, 4);
    }
    f32.view = {Encoding::kF32, {1, columns}, f32.bytes};
    std::mt19937_64 random(13);
    Matrix affine = affine_matrix({Encoding::kAffine8G128, Encoding::kF32}, 1, columns, random);
    std::memset(affine.bytes.data(), 255, affine.bytes.size());
    std::vector<float> x(static_cast<size_t>(columns), sign);
    for (const Matrix* matrix : {&q8, &f32, &affine}) {
      const PackedLinear weights = pack(matrix->view);
      for (const int planes : {1, 2}) {
        const auto expected =
            multiply_by_definition(matrix->view, FloatMode::kInt8Channel, x, planes);
        for (const KernelSet* set : supported_sets()) {
          expect_same(multiply(*set, weights, x, planes), expected, std::string(set->name));
        }
      }
    }
  }
}

TEST(Linear, ARowDoesNotDependOnTheRowsBesideIt) {
  std::mt19937_64 random(4);
  for (const Case& c : every_form(40, 576, random)) {
    const PackedLinear weights = pack(c.matrix.view, c.floats);
    const int64_t columns = weights.columns(), rows = 13;
    auto x = random_rows(rows, columns, random);
    x[static_cast<size_t>(2 * columns + 1)] = std::numeric_limits<float>::quiet_NaN();
    for (const KernelSet* set : supported_sets()) {
      const auto together = multiply(*set, weights, x, 2);
      for (int64_t row = 0; row < rows; ++row) {
        const std::vector<float> one(x.begin() + row * columns, x.begin() + (row + 1) * columns);
        const std::vector<float> part(together.begin() + row * weights.rows(),
                                      together.begin() + (row + 1) * weights.rows());
        expect_same(multiply(*set, weights, one, 2), part,
                    std::string(set->name) + " " + describe(c, row, 2));
      }
    }
  }
}

TEST(Linear, ANonFiniteActivationMakesItsOwnRowNaN) {
  std::mt19937_64 random(5);
  for (const Case& c : every_form(17, 256, random)) {
    if (c.floats == FloatMode::kKeep) continue;
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      auto x = random_rows(2, c.matrix.view.columns(), random);
      x[7] = bad;
      const auto y = multiply(kPortableKernels, pack(c.matrix.view), x, 2);
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(std::isnan(y[i]), i < 17) << describe(c, 2, 2);
    }
  }
}

TEST(Linear, PanelsOfARangeAreWrittenAndNothingElse) {
  std::mt19937_64 random(6);
  for (const Case& c : every_form(50, 320, random)) {
    const PackedLinear weights = pack(c.matrix.view, c.floats);
    const int64_t rows = 7, columns = weights.columns(), stride = 64;
    const auto x = random_rows(rows, columns, random);
    const auto whole = multiply(kPortableKernels, weights, x, 2);
    for (const KernelSet* set : supported_sets()) {
      auto activations = Activations::create(rows, columns, weights.activation_planes(2)).value();
      for (int64_t row = 0; row < rows; ++row)
        set->quantize_rows(x.data(), columns, row, 1, activations);
      for (const auto& [first, last] :
           {std::pair<int64_t, int64_t>{0, 1}, {1, 4}, {3, 4}, {2, 2}}) {
        std::vector<float> y(static_cast<size_t>(rows * stride), -7.0f);
        set->linear(weights, activations, rows, first, last, y.data(), stride);
        for (int64_t i = 0; i < rows * stride; ++i) {
          const int64_t row = i / stride, output = i % stride;
          const bool inside = output >= first * 16 && output < std::min<int64_t>(last * 16, 50);
          const float expected = inside ? whole[static_cast<size_t>(row * 50 + output)] : -7.0f;
          ASSERT_EQ(y[static_cast<size_t>(i)], expected)
              << set->name << " " << describe(c, rows, 2);
        }
      }
    }
  }
}

double relative_error(const std::vector<float>& y, const std::vector<float>& weights,
                      const std::vector<float>& x, int64_t columns) {
  const auto outputs = static_cast<int64_t>(weights.size()) / columns;
  double difference = 0, size = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i) / outputs,
                  output = static_cast<int64_t>(i) % outputs;
    double exact = 0;
    for (int64_t k = 0; k < columns; ++k) {
      exact += static_cast<double>(x[static_cast<size_t>(row * columns + k)]) *
               weights[static_cast<size_t>(output * columns + k)];
    }
    difference += (y[i] - exact) * (y[i] - exact);
    size += exact * exact;
  }
  return std::sqrt(difference / size);
}

// Against fp64 on the weights as computed with. Two planes are fp16 grade, also with outliers; one
// plane is 8-bit.
TEST(Linear, ErrorsAgainstDoublePrecisionAreThoseOfTheActivationBits) {
  std::mt19937_64 random(7);
  for (const Case& c : every_form(48, 2048, random)) {
    const PackedLinear weights = pack(c.matrix.view, c.floats);
    const int64_t columns = weights.columns();
    std::vector<float> w(static_cast<size_t>(48 * columns));
    weights.read_rows(0, 48, w);
    auto x = random_rows(4, columns, random);
    const auto error = [&](int planes) {
      return relative_error(multiply(kPortableKernels, weights, x, planes), w, x, columns);
    };
    if (c.floats == FloatMode::kKeep) {
      EXPECT_LT(error(2), 1e-6) << describe(c, 4, 2);
      continue;
    }
    EXPECT_LT(error(2), 5e-5) << describe(c, 4, 2);
    EXPECT_LT(error(1), 1.2e-2) << describe(c, 4, 1);
    for (size_t channel = 5; channel < x.size(); channel += 512) x[channel] *= 200;
    EXPECT_LT(error(2), 1e-3) << describe(c, 4, 2);
  }
}

TEST(Linear, ReadRowsGivesTheStoredWeights) {
  std::mt19937_64 random(8);
  for (const Case& c : every_form(37, 256, random)) {
    const TensorView& view = c.matrix.view;
    const PackedLinear weights = pack(view, c.floats);
    if (c.floats != FloatMode::kKeep && group_elements(view.encoding) == 0) continue;  // rounded
    std::vector<float> read(static_cast<size_t>(7 * view.columns())), stored(read.size());
    weights.read_rows(30, 7, read);
    dequantize(view.row_range(30, 7), stored);
    expect_same(read, stored, describe(c, 7, 0));
  }
}

TEST(Linear, Int8WeightsAreWithinHalfAStepOfTheStoredOnes) {
  std::mt19937_64 random(9);
  Matrix matrix = float_matrix(Encoding::kF32, 3, 50, random);
  std::memset(matrix.bytes.data() + 50 * 4, 0, 50 * 4);  // row 1 is zero
  std::vector<float> read(150), stored(150);
  dequantize(Encoding::kF32, matrix.bytes, stored);
  for (const FloatMode floats : {FloatMode::kInt8Channel, FloatMode::kInt8Groups}) {
    pack(matrix.view, floats).read_rows(0, 3, read);
    for (int row = 0; row < 3; ++row) {
      const float absmax =
          std::abs(*std::max_element(stored.begin() + row * 50, stored.begin() + row * 50 + 50,
                                     [](float a, float b) { return std::abs(a) < std::abs(b); }));
      for (size_t i = static_cast<size_t>(row) * 50; i < static_cast<size_t>(row + 1) * 50; ++i) {
        EXPECT_LE(std::abs(read[i] - stored[i]), absmax / 127 * 0.50001f);
      }
    }
  }
}

TEST(Linear, RowsInTheMiddleOfATensorPackAsIfAlone) {
  std::mt19937_64 random(10);
  for (const Case& c : every_form(60, 256, random)) {
    const TensorView& view = c.matrix.view;
    const auto part = PackedLinear::pack(view, 20, 21, c.floats).value();
    const auto x = random_rows(2, view.columns(), random);
    const auto whole = multiply(kPortableKernels, pack(view, c.floats), x, 2);
    std::vector<float> expected;
    for (const int64_t row : {0, 1}) {
      expected.insert(expected.end(), whole.begin() + row * 60 + 20, whole.begin() + row * 60 + 41);
    }
    expect_same(multiply(kPortableKernels, part, x, 2), expected, describe(c, 2, 2));
  }
}

TEST(Linear, AWeightThatIsNotFiniteIsAnError) {
  std::mt19937_64 random(11);
  for (const HalfFields& fields : block_encodings()) {
    for (const int64_t at : fields.at) {
      Matrix matrix = random_blocks(fields, 2, 256, random);
      const auto second_row = static_cast<size_t>(matrix.view.row_bytes());
      put_half(std::numeric_limits<float>::infinity(),
               &matrix.bytes[second_row + static_cast<size_t>(at)]);
      // Blocks whose integer scale is zero would give NaN, the others infinity: both are refused.
      const auto packed = PackedLinear::pack(matrix.view, 0, 2, FloatMode::kInt8Channel);
      ASSERT_FALSE(packed.ok()) << name_of(fields.encoding);
      EXPECT_THAT(packed.error().message(), testing::HasSubstr("row 1"));
    }
  }
  for (const Affine& affine : affine_encodings()) {
    for (const bool is_scale : {false, true}) {
      Matrix matrix = affine_matrix(affine, 2, 256, random);
      auto& values = is_scale ? matrix.scales : matrix.offsets;
      put_float(affine.scales, std::numeric_limits<float>::infinity(), &values[values.size() / 2]);
      const auto packed = PackedLinear::pack(matrix.view, 0, 2, FloatMode::kInt8Channel);
      ASSERT_FALSE(packed.ok()) << name_of(affine.encoding);
      EXPECT_THAT(packed.error().message(), testing::HasSubstr("row 1"));
    }
  }
  for (const FloatMode floats :
       {FloatMode::kInt8Channel, FloatMode::kInt8Groups, FloatMode::kKeep}) {
    Matrix matrix = float_matrix(Encoding::kF32, 2, 8, random);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(&matrix.bytes[40], &nan, 4);
    EXPECT_FALSE(PackedLinear::pack(matrix.view, 0, 2, floats).ok());
    EXPECT_TRUE(PackedLinear::pack(matrix.view, 0, 1, floats).ok());
  }
}

TEST(Linear, AnIntegerTensorCannotBeAWeight) {
  const std::vector<std::byte> bytes(64);
  const TensorView view{Encoding::kI32, {2, 8}, bytes};
  const auto packed = PackedLinear::pack(view, 0, 2, FloatMode::kInt8Channel);
  ASSERT_FALSE(packed.ok());
  EXPECT_THAT(packed.error().message(), testing::HasSubstr("i32"));
}

TEST(Linear, WeightsTakeTheMemoryOfTheirBits) {
  std::mt19937_64 random(12);
  const auto bits = [](const Matrix& matrix, FloatMode floats = FloatMode::kInt8Channel) {
    return static_cast<double>(pack(matrix.view, floats).byte_count()) * 8 / (64 * 512);
  };
  const auto blocks = [&](size_t row) {
    return bits(random_blocks(block_encodings()[row], 64, 512, random));
  };
  EXPECT_EQ(blocks(0), 4.5);  // q4_0
  EXPECT_EQ(blocks(1), 5.0);  // q4_1
  EXPECT_EQ(blocks(4), 8.5);  // q8_0
  const auto affine = [&](const Affine& kind) {
    return bits(affine_matrix(kind, 64, 512, random));
  };
  EXPECT_EQ(affine({Encoding::kAffine4G64, Encoding::kBF16}), 4.5);
  EXPECT_EQ(affine({Encoding::kAffine4G128, Encoding::kF16}), 4.25);
  EXPECT_EQ(affine({Encoding::kAffine8G32, Encoding::kF32}), 10.0);
  EXPECT_EQ(bits(float_matrix(Encoding::kBF16, 64, 512, random), FloatMode::kInt8Groups), 8.5);
}

}  // namespace
}  // namespace espalier::units::cpu
