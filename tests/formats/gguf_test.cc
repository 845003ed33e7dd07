#include "espalier/formats/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "espalier/base/json.h"
#include "espalier/base/mapped_file.h"
#include "espalier/formats/safetensors.h"
#include "tests/formats/gguf_builder.h"
#include "tests/formats/hostile_bytes.h"

namespace espalier::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kGolden = ESPALIER_SOURCE_DIR "/tests/golden/formats/";

Gguf open_golden(const std::string& name) {
  auto gguf = open_gguf(kGolden + name);
  EXPECT_TRUE(gguf.ok()) << gguf.error().message();
  return gguf.ok() ? std::move(gguf).value() : Gguf{};
}

// The error of a file, or "" where it can be read. `bytes` is a heap allocation of its exact size.
std::string problem_of(const Bytes& bytes) {
  const auto gguf = parse_gguf(bytes, "test");
  if (gguf.ok()) return "";
  EXPECT_FALSE(gguf.error().fix.empty());
  return gguf.error().message();
}
std::string problem_of(const GgufBuilder& builder) { return problem_of(builder.build()); }

TEST(Gguf, ReadsEveryEncodingAsGgufPyDoes) {
  const Gguf file = open_golden("encodings.gguf");
  const auto expected = open_safetensors(kGolden + "encodings.safetensors");
  ASSERT_TRUE(expected.ok());
  ASSERT_EQ(file.tensors.size(), expected->tensors.size());
  for (const auto& [name, view] : file.tensors) {
    const TensorView& golden = expected->tensors.at(name);
    EXPECT_EQ(view.shape, golden.shape) << name;
    std::vector<float> values(static_cast<size_t>(view.element_count()));
    dequantize(view, values);
    EXPECT_EQ(std::memcmp(values.data(), golden.bytes.data(), golden.bytes.size()), 0) << name;
  }
}

TEST(Gguf, ReadsEveryTypeOfValue) {
  const Gguf file = open_golden("metadata.gguf");
  const auto expected = parse_json(*read_text_file(kGolden + "metadata.json"), "metadata.json");
  const GgufMetadata& metadata = file.metadata;
  for (const auto& [key, value] : expected->items()) {
    if (value.is_number_integer()) {
      EXPECT_EQ(*metadata.integer(key), value.get<int64_t>()) << key;
    }
    if (value.is_number()) {
      EXPECT_EQ(*metadata.number(key), value.get<double>()) << key;
    }
    if (value.is_boolean()) {
      EXPECT_EQ(*metadata.boolean(key), value.get<bool>()) << key;
    }
    if (value.is_string()) {
      EXPECT_EQ(*metadata.string(key), value.get<std::string>()) << key;
    }
    EXPECT_EQ(metadata.is_array(key), value.is_array()) << key;
  }
  EXPECT_THAT(*metadata.strings("array.strings"), ElementsAre("a", "", "Ġthe", "日本"));
  EXPECT_THAT(*metadata.integers("array.integers"), ElementsAre(3, -1, 4, -1, 5));
  EXPECT_THAT(*metadata.floats("array.floats"), ElementsAre(0.5f, -0.25f, 1e10f));
  const GgufValue& nested = metadata.entries().at("array.nested");
  EXPECT_EQ(nested.count, 3u);
  EXPECT_EQ(nested.element_type, GgufType::kArray);
  EXPECT_EQ(nested.bytes.size(), 3 * 12 + 6 * 4u);
}

TEST(Gguf, FollowsTheAlignmentOfTheFile) {
  const Gguf file = open_golden("metadata.gguf");
  EXPECT_EQ(*file.metadata.integer("general.alignment"), 64);
  std::vector<float> values(2);
  dequantize(Encoding::kF32, file.tensors.at("two").bytes, values);
  EXPECT_THAT(values, ElementsAre(4.0f, 5.0f));
  EXPECT_THAT(file.tensors.at("two").shape, ElementsAre(1, 2));
}

TEST(GgufMetadata, AWrongTypeNamesFileKeyAndBothTypes) {
  const auto bytes = GgufBuilder()
                         .text("text", "x")
                         .texts("texts", {"a", "b"})
                         .entry("huge", GgufType::kUint64, UINT64_MAX)
                         .f32("float", 1.5f)
                         .text("bytes", "\xff")
                         .build();
  const auto gguf = parse_gguf(bytes, "model.gguf");
  ASSERT_TRUE(gguf.ok()) << gguf.error().message();
  const GgufMetadata& metadata = gguf->metadata;
  EXPECT_EQ(
      metadata.integer("text").error().message(),
      "model.gguf: metadata 'text' cannot be used: expected an integer below 2^63, got string. "
      "Convert the model to GGUF again.");
  EXPECT_THAT(metadata.integers("texts").error().actual, HasSubstr("an array of 2 string"));
  EXPECT_THAT(metadata.string("absent").error().actual, HasSubstr("no such key"));
  EXPECT_FALSE(metadata.integer("huge").ok());
  EXPECT_FALSE(metadata.integer("float").ok());
  EXPECT_FALSE(metadata.boolean("float").ok());
  EXPECT_FALSE(metadata.string("bytes").ok());
  EXPECT_FALSE(metadata.strings("text").ok());
  EXPECT_FALSE(metadata.floats("texts").ok());
  EXPECT_FALSE(metadata.floats("float").ok());
}

TEST(GgufMetadata, AFallbackIsForAbsentKeysOnly) {
  const auto bytes = GgufBuilder().u32("n", 7).build();
  const auto gguf = parse_gguf(bytes, "test");
  const GgufMetadata& metadata = gguf->metadata;
  EXPECT_EQ(*metadata.integer_or("n", 1), 7);
  EXPECT_EQ(*metadata.integer_or("absent", 1), 1);
  EXPECT_EQ(*metadata.number_or("absent", 0.5), 0.5);
  EXPECT_TRUE(*metadata.boolean_or("absent", true));
  EXPECT_EQ(*metadata.string_or("absent", "x"), "x");
  EXPECT_FALSE(metadata.string_or("n", "x").ok());
}

TEST(Gguf, RejectsAnythingThatIsNotVersion2Or3InLittleEndian) {
  GgufBuilder builder;
  builder.version = 2;
  EXPECT_EQ(problem_of(builder), "");
  builder.version = 1;
  EXPECT_THAT(problem_of(builder), HasSubstr("got version 1"));
  builder.version = 0x03000000;
  EXPECT_THAT(problem_of(builder), HasSubstr("a big-endian file"));
  EXPECT_THAT(problem_of(Bytes(64)), HasSubstr("not a GGUF file"));
  EXPECT_THAT(problem_of(Bytes()), HasSubstr("not a GGUF file"));
}

TEST(Gguf, BelievesNoCountThatTheFileIsTooShortFor) {
  for (const int64_t count : {int64_t{1}, int64_t{1} << 32, INT64_MAX}) {
    GgufBuilder entries;
    entries.entry_count = count;
    EXPECT_THAT(problem_of(entries), HasSubstr("metadata entries"));
    GgufBuilder tensors;
    tensors.tensor_count = count;
    EXPECT_THAT(problem_of(tensors), HasSubstr("tensors"));
    for (const GgufType type :
         {GgufType::kUint8, GgufType::kFloat64, GgufType::kString, GgufType::kArray}) {
      EXPECT_THAT(problem_of(GgufBuilder().begin_array("a", type, static_cast<uint64_t>(count))),
                  HasSubstr("too short"));
    }
  }
}

TEST(Gguf, RejectsArraysThatAreNestedTooDeeply) {
  const auto nested = [](int levels) {
    GgufBuilder builder;
    builder.begin_array("a", GgufType::kArray, 1);
    for (int i = 2; i < levels; ++i) builder.raw(GgufType::kArray).raw(uint64_t{1});
    return builder.raw(GgufType::kUint8).raw(uint64_t{1}).raw(uint8_t{5});
  };
  EXPECT_EQ(problem_of(nested(8)), "");
  EXPECT_THAT(problem_of(nested(9)), HasSubstr("nested too deeply"));
  EXPECT_THAT(problem_of(nested(100'000)), HasSubstr("nested too deeply"));
}

TEST(Gguf, RejectsUnknownTypesOfValues) {
  EXPECT_THAT(problem_of(GgufBuilder().entry("a", GgufType{13}, 0)),
              HasSubstr("unknown type of value"));
  EXPECT_THAT(problem_of(GgufBuilder().begin_array("a", GgufType{99}, 0)),
              HasSubstr("unknown type of array"));
}

TEST(Gguf, RejectsNamesThatAppearTwiceOrAreNotUtf8) {
  EXPECT_THAT(problem_of(GgufBuilder().u32("a", 1).u32("a", 1)),
              HasSubstr("metadata 'a' appears twice"));
  EXPECT_THAT(problem_of(GgufBuilder().floats("t", {1}).floats("t", {1})),
              HasSubstr("tensor 't' appears twice"));
  EXPECT_THAT(problem_of(GgufBuilder().u32("\xc0\x80", 1)), HasSubstr("UTF-8"));
  EXPECT_THAT(problem_of(GgufBuilder().floats("\xed\xa0\x80", {1})), HasSubstr("UTF-8"));
}

TEST(Gguf, RejectsAlignmentsThatAreNoPowerOfTwo) {
  for (const uint32_t alignment : {0u, 3u, 48u, UINT32_MAX}) {
    EXPECT_THAT(problem_of(GgufBuilder().u32("general.alignment", alignment)),
                HasSubstr("a power of two"));
  }
  EXPECT_EQ(problem_of(GgufBuilder().u32("general.alignment", 1u << 31)), "");
}

TEST(Gguf, RejectsATensorThatEndsPastTheFile) {
  const auto tensor = [](uint64_t offset, size_t data_bytes) {
    return GgufBuilder().tensor("t", {8}, 0, offset).data(data_bytes);
  };
  EXPECT_EQ(problem_of(tensor(0, 32)), "");
  EXPECT_THAT(problem_of(tensor(0, 31)), HasSubstr("ends past the end"));
  EXPECT_THAT(problem_of(tensor(32, 32)), HasSubstr("ends past the end"));
  EXPECT_THAT(problem_of(tensor(UINT64_MAX - 31, 32)), HasSubstr("ends past the end"));
  EXPECT_THAT(problem_of(tensor(8, 64)), HasSubstr("a multiple of 32"));
}

TEST(Gguf, RejectsTensorsThatOverlap) {
  const GgufBuilder overlap =
      GgufBuilder().tensor("a", {16}, 0, 0).tensor("b", {8}, 0, 32).data(64);
  EXPECT_THAT(problem_of(overlap), HasSubstr("tensor 'b' is in the wrong place"));
  const GgufBuilder empty_beside =
      GgufBuilder().tensor("a", {8}, 0, 0).tensor("b", {0}, 0, 0).data(32);
  EXPECT_EQ(problem_of(empty_beside), "");
}

TEST(Gguf, RejectsImpossibleShapes) {
  constexpr uint64_t kHuge = uint64_t{1} << 62;
  const auto shape = [](const std::vector<uint64_t>& extents, uint32_t type) {
    return problem_of(GgufBuilder().tensor("t", extents, type, 0).data(1024));
  };
  EXPECT_EQ(shape({4, 3, 2, 1}, 0), "");
  EXPECT_EQ(shape({}, 0), "");
  EXPECT_THAT(shape({1, 1, 1, 1, 1}, 0),
              HasSubstr("too many dimensions: expected at most 4, got 5"));
  EXPECT_THAT(shape({kHuge, 2}, 0), HasSubstr("impossible shape"));
  EXPECT_THAT(shape({kHuge, kHuge, 0}, 0), HasSubstr("impossible shape"));
  EXPECT_THAT(shape({UINT64_MAX}, 0), HasSubstr("impossible shape"));
  EXPECT_THAT(shape({UINT64_MAX}, 24), HasSubstr("ends past the end"));
  EXPECT_EQ(shape({32}, 3), "");
  EXPECT_THAT(shape({33, 2}, 3), HasSubstr("whole blocks of 32"));
  EXPECT_THAT(shape({128, 2}, 14), HasSubstr("whole blocks of 256"));
}

TEST(Gguf, NamesATensorTypeThatIsNotSupported) {
  const auto type = [](uint32_t number) {
    return problem_of(GgufBuilder().tensor("t", {256}, number, 0).data(4096));
  };
  EXPECT_THAT(type(16), HasSubstr("got IQ2_XXS"));
  EXPECT_THAT(type(39), HasSubstr("got MXFP4"));
  EXPECT_THAT(type(4), HasSubstr("got type 4"));
  EXPECT_THAT(type(UINT32_MAX), HasSubstr("got type 4294967295"));
}

TEST(Gguf, RefusesEveryTruncation) {
  for (const char* name : {"metadata.gguf", "split/tiny-00001-of-00003.gguf"}) {
    const Bytes file = read_bytes(kGolden + name);
    size_t complete = 0;  // gguf-py pads the end of the data
    for_each_truncation(file,
                        [&](const Bytes& bytes) { complete += problem_of(bytes).empty() ? 1 : 0; });
    EXPECT_LT(complete, 64u) << name;
  }
  const Bytes exact = GgufBuilder().texts("a", {"b", "c"}).tensor("t", {8}, 0, 0).data(32).build();
  for_each_truncation(exact, [](const Bytes& bytes) { EXPECT_NE(problem_of(bytes), ""); });
}

TEST(Gguf, MutationsAreRefusedOrSound) {
  const Bytes file = read_bytes(kGolden + "metadata.gguf");
  int accepted = 0;
  for_each_mutation(file, file.size(), 20'000, 2, [&](const Bytes& bytes) {
    const auto gguf = parse_gguf(bytes, "test");
    if (!gguf.ok()) return;
    ++accepted;
    expect_sound(gguf->tensors);
    for (const auto& [key, value] : gguf->metadata.entries()) {
      (void)gguf->metadata.string(key).ok();
      (void)gguf->metadata.number(key).ok();
      (void)gguf->metadata.strings(key).ok();
      (void)gguf->metadata.integers(key).ok();
      (void)gguf->metadata.floats(key).ok();
    }
  });
  EXPECT_GT(accepted, 20);
}

}  // namespace
}  // namespace espalier::formats
