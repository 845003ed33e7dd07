#include "espalier/formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"
#include "tests/formats/hostile_bytes.h"
#include "tests/support/temporary_directory.h"

namespace espalier::formats {
namespace {

using testing::HasSubstr;

const std::string kGolden = ESPALIER_SOURCE_DIR "/tests/golden/formats/";

Bytes file_of(const std::string& header, size_t data_bytes, uint64_t claimed_header_bytes) {
  Bytes bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &claimed_header_bytes, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

Result<Safetensors> parse(const std::string& header, size_t data_bytes) {
  // Views of a local are not looked at: only whether the header is accepted, and its metadata.
  return parse_safetensors(file_of(header, data_bytes, header.size()), "test");
}

std::vector<float> values_of(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(view.element_count()));
  dequantize(view, values);
  return values;
}

TEST(Safetensors, ReadsEveryDtypeAsTheReferenceLibraryWroteIt) {
  const auto file = open_safetensors(kGolden + "dtypes.safetensors");
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(file->metadata.at("name"), "größe");
  int compared = 0;
  for (const auto& [name, expected] : file->tensors) {
    if (!name.ends_with(".fp32")) continue;
    const TensorView& view = file->tensors.at(name.substr(0, name.size() - 5));
    EXPECT_EQ(view.shape, expected.shape) << name;
    const auto values = values_of(view);
    // As bytes: NaNs and zeros have to be the same ones, too.
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(values)), expected.bytes)) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 18);
}

struct Case {
  const char* name;
  std::string header;
  size_t data_bytes;
  const char* problem;  // a part of the message; empty where the file is valid
};

constexpr auto kTensor = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";

class SafetensorsRules : public testing::TestWithParam<Case> {};

TEST_P(SafetensorsRules, Hold) {
  const auto result = parse(GetParam().header, GetParam().data_bytes);
  if (*GetParam().problem == '\0') {
    EXPECT_TRUE(result.ok()) << result.error().message();
  } else {
    ASSERT_FALSE(result.ok());
    EXPECT_THAT(result.error().message(), HasSubstr(GetParam().problem));
    EXPECT_FALSE(result.error().fix.empty());
  }
}

std::string tensor(const std::string& fields) { return R"({"a":{)" + fields + "}}"; }

const std::string kPlain = std::string("{") + kTensor + "}";
const std::string kDeep(200, '[');

// The reference library agrees on each, except where a row says that it is more patient.
INSTANTIATE_TEST_SUITE_P(
    Reference, SafetensorsRules,
    testing::Values(
        Case{"Plain", kPlain, 4, ""}, Case{"PaddingBehind", kPlain + "   \n", 4, ""},
        Case{"NoTensors", "{}", 0, ""},
        Case{"UnknownField",
             tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":[1,{"y":[]}])"), 4, ""},
        Case{"NullMetadata", R"({"__metadata__":null,)" + std::string(kTensor) + "}", 4, ""},
        Case{"EmptyTensors",
             R"({"z":{"dtype":"F32","shape":[0,5],"data_offsets":[4,4]},)" + std::string(kTensor) +
                 R"(,"y":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
             4, ""},
        Case{"EmptyName", R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, ""},
        // More patient there: the last one counts.
        Case{"NameTwice", "{" + std::string(kTensor) + "," + kTensor + "}", 4,
             "entry 'a' appears twice"},
        Case{"FieldTwice",
             tensor(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])"), 4,
             "a field twice"},
        Case{"MetadataTwice", R"({"__metadata__":{},"__metadata__":{}})", 0, "appears twice"},
        Case{"MetadataOfNumbers", R"({"__metadata__":{"x":1}})", 0, "a number in the wrong place"},
        Case{"FractionInShape", tensor(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), 4,
             "a fraction"},
        Case{"NegativeShape", tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4,
             "a negative number"},
        Case{"ListInShape", tensor(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])"), 4,
             "a list in the wrong place"},
        Case{"NullShape", tensor(R"("dtype":"F32","shape":null,"data_offsets":[0,4])"), 4,
             "null in the wrong place"},
        Case{"NumberAsShape", tensor(R"("dtype":"F32","shape":1,"data_offsets":[0,4])"), 4,
             "a number in the wrong place"},
        Case{"MissingDtype", tensor(R"("shape":[1],"data_offsets":[0,4])"), 4, "lacks dtype"},
        Case{"ThreeOffsets", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])"), 4,
             "two data_offsets"},
        Case{"UnknownDtype", tensor(R"("dtype":"F7","shape":[1],"data_offsets":[0,4])"), 4, "'F7'"},
        Case{"NotAnObject", "[]", 0, "a list in the wrong place"},
        Case{"TensorIsANumber", R"({"a":1})", 0, "a number in the wrong place"},
        Case{"NotJson", "{a}", 0, "not valid"}, Case{"Empty", "", 0, "not valid"},
        Case{"HiddenBehindAZero", kPlain + std::string(1, '\0') + "x", 4, "a zero byte"},
        Case{"NotUtf8", "{\"\xff\":{}}", 0, "not valid"},
        Case{"Surrogate", R"({"\ud800":{}})", 0, "not valid"},
        Case{"TooDeep", tensor(R"("x":)" + kDeep), 0, "nested too deeply"},
        Case{"DataLeft", kPlain, 5, "do not cover"}, Case{"DataMissing", kPlain, 3, "wrong place"},
        Case{"Hole", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), 8, "wrong place"},
        Case{"Backwards", tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), 4,
             "wrong place"},
        Case{"Overlap",
             "{" + std::string(kTensor) +
                 R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
             6, "wrong place"},
        Case{"WrongSize", tensor(R"("dtype":"F16","shape":[1],"data_offsets":[0,4])"), 4,
             "2 bytes for F16 [1]"},
        Case{"ProductOverflows",
             tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), 4,
             "overflows"},
        Case{"OverflowHiddenByZero",
             tensor(R"("dtype":"F32","shape":[4294967296,4294967296,0],"data_offsets":[0,0])"), 0,
             "overflows"},
        Case{"HugeExtent",
             tensor(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4])"), 4,
             "wrong size"},
        Case{"HugeOffsets",
             tensor(R"("dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615])"), 4,
             "wrong place"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Safetensors, RejectsAHeaderThatClaimsMoreThanTheFileOrTheLimit) {
  EXPECT_FALSE(parse_safetensors(file_of(kPlain, 4, kPlain.size() + 5), "test").ok());
  EXPECT_FALSE(parse_safetensors(file_of(kPlain, 4, UINT64_MAX), "test").ok());
  const auto too_long =
      parse_safetensors(file_of(std::string(100'000'001, ' '), 0, 100'000'001), "test");
  ASSERT_FALSE(too_long.ok());
  EXPECT_THAT(too_long.error().message(), HasSubstr("expected at most 100000000 bytes"));
}

TEST(Safetensors, RefusesEveryTruncation) {
  const Bytes file = read_bytes(kGolden + "checkpoint/model-00003-of-00006.safetensors");
  for_each_truncation(
      file, [](const Bytes& bytes) { EXPECT_FALSE(parse_safetensors(bytes, "test").ok()); });
}

TEST(Safetensors, MutationsAreRefusedOrSound) {
  const Bytes file = read_bytes(kGolden + "checkpoint/model-00002-of-00006.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), 8);
  int accepted = 0;
  for_each_mutation(file, 8 + header_bytes, 20'000, 1, [&](const Bytes& bytes) {
    const auto result = parse_safetensors(bytes, "test");
    if (!result.ok()) return;
    ++accepted;
    expect_sound(result->tensors);
  });
  EXPECT_GT(accepted, 20);  // flips inside names
}

TEST(Safetensors, OpensAShardedCheckpoint) {
  const auto set = open_sharded_safetensors(kGolden + "checkpoint/model.safetensors.index.json");
  ASSERT_TRUE(set.ok()) << set.error().message();
  const auto text = read_text_file(kGolden + "checkpoint/expected.json");
  const auto expected = parse_json(*text, "expected.json");
  ASSERT_EQ(set->tensors.size(), expected->size());
  EXPECT_EQ(set->owners.size(), 6u);
  for (const auto& [name, values] : expected->items()) {
    const auto actual = values_of(set->tensors.at(name));
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(actual[i], values[i].get<float>()) << name;
  }
}

class SafetensorsIndex : public testing::Test {
 protected:
  std::string open(const std::string& index) {
    const auto set = open_sharded_safetensors(directory_.write("index.json", index));
    return set.ok() ? "" : set.error().message();
  }
  TemporaryDirectory directory_;
};

TEST_F(SafetensorsIndex, LeavesOutWhatItDoesNotName) {
  directory_.write(
      "s",
      file_of(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
          2, 105));
  const auto set = open_sharded_safetensors(directory_.write("i", R"({"weight_map":{"a":"s"}})"));
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->tensors.size(), 1u);
}

TEST_F(SafetensorsIndex, OpensNothingOutsideItsDirectory) {
  for (const char* name : {"../s", "/etc/passwd", "a/b", "", "..", ".", R"(s\u0000)"}) {
    EXPECT_NE(open(fmt::format(R"({{"weight_map":{{"a":"{}"}}}})", name)), "") << name;
  }
  EXPECT_THAT(open(R"({"weight_map":{"a":"../s"}})"), HasSubstr("a file beside the index"));
  EXPECT_THAT(open(R"({"weight_map":{"a":3}})"), HasSubstr("a file beside the index"));
}

TEST_F(SafetensorsIndex, SaysWhatIsMissing) {
  EXPECT_THAT(open("{}"), HasSubstr("weight_map"));
  EXPECT_THAT(open(R"({"weight_map":{"a":"absent"}})"), HasSubstr("cannot open"));
  directory_.write("s", file_of("{}", 0, 2));
  EXPECT_THAT(open(R"({"weight_map":{"a":"s"}})"),
              HasSubstr("tensor 'a' is not where the index says"));
}

}  // namespace
}  // namespace espalier::formats
