#include "espalier/formats/gguf_types.h"

#include <array>
#include <cstddef>

namespace espalier::formats {
namespace {

using Kind = GgufTypeInfo::Kind;

// Rows in the order of their numbers.
constexpr std::array kValueTypes = {
    GgufTypeInfo{GgufType::kUint8, "uint8", Kind::kUnsigned, 1},
    GgufTypeInfo{GgufType::kInt8, "int8", Kind::kSigned, 1},
    GgufTypeInfo{GgufType::kUint16, "uint16", Kind::kUnsigned, 2},
    GgufTypeInfo{GgufType::kInt16, "int16", Kind::kSigned, 2},
    GgufTypeInfo{GgufType::kUint32, "uint32", Kind::kUnsigned, 4},
    GgufTypeInfo{GgufType::kInt32, "int32", Kind::kSigned, 4},
    GgufTypeInfo{GgufType::kFloat32, "float32", Kind::kFloat, 4},
    GgufTypeInfo{GgufType::kBool, "bool", Kind::kBool, 1},
    GgufTypeInfo{GgufType::kString, "string", Kind::kString, 8},
    GgufTypeInfo{GgufType::kArray, "array", Kind::kArray, 12},
    GgufTypeInfo{GgufType::kUint64, "uint64", Kind::kUnsigned, 8},
    GgufTypeInfo{GgufType::kInt64, "int64", Kind::kSigned, 8},
    GgufTypeInfo{GgufType::kFloat64, "float64", Kind::kFloat, 8},
};

// ggml's list; the gaps were types that ggml has removed.
constexpr std::array kTensorTypes = {
    GgufTensorType{0, "F32", Encoding::kF32},
    GgufTensorType{1, "F16", Encoding::kF16},
    GgufTensorType{2, "Q4_0", Encoding::kQ4_0},
    GgufTensorType{3, "Q4_1", Encoding::kQ4_1},
    GgufTensorType{6, "Q5_0", Encoding::kQ5_0},
    GgufTensorType{7, "Q5_1", Encoding::kQ5_1},
    GgufTensorType{8, "Q8_0", Encoding::kQ8_0},
    GgufTensorType{9, "Q8_1", {}},
    GgufTensorType{10, "Q2_K", Encoding::kQ2_K},
    GgufTensorType{11, "Q3_K", Encoding::kQ3_K},
    GgufTensorType{12, "Q4_K", Encoding::kQ4_K},
    GgufTensorType{13, "Q5_K", Encoding::kQ5_K},
    GgufTensorType{14, "Q6_K", Encoding::kQ6_K},
    GgufTensorType{15, "Q8_K", {}},
    GgufTensorType{16, "IQ2_XXS", {}},
    GgufTensorType{17, "IQ2_XS", {}},
    GgufTensorType{18, "IQ3_XXS", {}},
    GgufTensorType{19, "IQ1_S", {}},
    GgufTensorType{20, "IQ4_NL", Encoding::kIQ4_NL},
    GgufTensorType{21, "IQ3_S", {}},
    GgufTensorType{22, "IQ2_S", {}},
    GgufTensorType{23, "IQ4_XS", {}},
    GgufTensorType{24, "I8", Encoding::kI8},
    GgufTensorType{25, "I16", Encoding::kI16},
    GgufTensorType{26, "I32", Encoding::kI32},
    GgufTensorType{27, "I64", Encoding::kI64},
    GgufTensorType{28, "F64", Encoding::kF64},
    GgufTensorType{29, "IQ1_M", {}},
    GgufTensorType{30, "BF16", Encoding::kBF16},
    GgufTensorType{34, "TQ1_0", {}},
    GgufTensorType{35, "TQ2_0", {}},
    GgufTensorType{39, "MXFP4", {}},
    GgufTensorType{40, "NVFP4", {}},
    GgufTensorType{41, "Q1_0", {}},
};

}  // namespace

const GgufTypeInfo* gguf_type_info(uint32_t number) {
  return number < kValueTypes.size() ? &kValueTypes[number] : nullptr;
}

const GgufTypeInfo& gguf_type_info(GgufType type) {
  return kValueTypes.at(static_cast<size_t>(type));
}

const GgufTensorType* gguf_tensor_type(uint32_t number) {
  for (const GgufTensorType& row : kTensorTypes) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

}  // namespace espalier::formats
