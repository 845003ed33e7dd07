// Packed files: what was written is read back to the bit, for every form of weights; anything else
// under the name is refused.
#include "espalier/units/cpu/packed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "espalier/base/checksum.h"
#include "espalier/base/mapped_file.h"
#include "espalier/units/cpu/matrix_packing.h"
#include "tests/support/temporary_directory.h"
#include "tests/units/packed_content.h"
#include "tests/units/random_matrix.h"

namespace espalier::units::cpu {
namespace {

using ::testing::HasSubstr;

TEST(PackedFile, GivesBackWhatWasPacked) {
  const TemporaryDirectory directory;
  ThreadPool pool(3);
  for (const size_t blocks : {0u, 1u, 2u, 50u}) {
    const PackedContent content = numbered_content("key", blocks, 320);
    const std::string path = directory / std::to_string(blocks);
    ASSERT_TRUE(write_packed_file(path, content, pool).ok());
    const auto read = read_packed_file(path, content, pool);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_TRUE(holds_content(*read, content));
    EXPECT_TRUE(holds_content(pack_into_memory(content, pool).value(), content));
    EXPECT_EQ(std::filesystem::file_size(path), packed_file_bytes(content));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read->bytes) % 64, 0u);
  }
}

// Those who have time help others, but begin with what they will read.
TEST(PackedFile, IsPackedByTheThreadsWhoseShareItIs) {
  constexpr size_t kBlocks = 64;
  ThreadPool pool(4);
  PackedContent content = numbered_content("key", kBlocks, 64);
  std::vector<std::atomic<std::thread::id>> packed_by(kBlocks);
  const auto pack = content.pack;
  content.pack = [&](size_t block, std::byte* out) {
    packed_by[block] = std::this_thread::get_id();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return pack(block, out);
  };
  ASSERT_TRUE(pack_into_memory(content, pool).ok());
  std::set<std::thread::id> first_of_shares;
  for (size_t share = 0; share < 4; ++share) first_of_shares.insert(packed_by[share * kBlocks / 4]);
  EXPECT_EQ(first_of_shares.size(), 4u);
}

TEST(PackedFile, TheFirstErrorIsTheSameWhateverTheThreadsDo) {
  ThreadPool pool(4);
  PackedContent content = numbered_content("key", 50, 64);
  std::mt19937_64 random(4);
  for (int trial = 0; trial < 50; ++trial) {
    std::set<size_t> bad;
    while (bad.size() < 5) bad.insert(random() % 50);
    content.pack = [&](size_t block, std::byte* out) -> Status {
      std::fill_n(out, 64, std::byte{0});
      if (!bad.contains(block)) return Ok{};
      return Error{.what = std::to_string(block), .expected = {}, .actual = {}, .fix = {}};
    };
    const auto packed = pack_into_memory(content, pool);
    ASSERT_FALSE(packed.ok());
    EXPECT_EQ(packed.error().what, std::to_string(*bad.begin()));
  }
}

TEST(PackedFile, RefusesAFlippedBitAnywhere) {
  const TemporaryDirectory directory;
  ThreadPool pool(1);
  const PackedContent content = numbered_content("the key of a model\n", 3, 128);
  ASSERT_TRUE(write_packed_file(directory / "good", content, pool).ok());
  const std::string good = read_text_file(directory / "good").value();
  std::fstream file(directory / "good", std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at)).put(byte).flush();
  };
  // The zeros that fill the page of the head are many and alike.
  for (size_t at = 0; at<good.size(); at += at> 100 && at < 4000 ? 50 : 1) {
    put(at, static_cast<char>(good[at] ^ 1 << at % 8));
    const auto read = read_packed_file(directory / "good", content, pool);
    ASSERT_FALSE(read.ok()) << "byte " << at << " of " << good.size();
    ASSERT_THAT(read.error().message(), HasSubstr("does not hold the packed weights"));
    put(at, good[at]);
  }
  EXPECT_TRUE(read_packed_file(directory / "good", content, pool).ok());
}

TEST(PackedFile, RefusesEveryOtherLength) {
  const TemporaryDirectory directory;
  ThreadPool pool(1);
  const PackedContent content = numbered_content("key", 3, 128);
  ASSERT_TRUE(write_packed_file(directory / "good", content, pool).ok());
  const std::string good = read_text_file(directory / "good").value();
  for (size_t size = 0; size < good.size(); size += size < 4000 ? 97 : 1) {
    const std::string path = directory.write("bad", good.substr(0, size));
    ASSERT_FALSE(read_packed_file(path, content, pool).ok()) << size;
  }
  EXPECT_FALSE(read_packed_file(directory.write("bad", good + "x"), content, pool).ok());
  EXPECT_FALSE(read_packed_file(directory / "absent", content, pool).ok());
  EXPECT_FALSE(read_packed_file(directory.path(), content, pool).ok());
}

TEST(PackedFile, RefusesTheFileOfAnotherModel) {
  const TemporaryDirectory directory;
  ThreadPool pool(2);
  const PackedContent content = numbered_content("key", 3, 128);
  ASSERT_TRUE(write_packed_file(directory / "file", content, pool).ok());
  for (const PackedContent& other :
       {numbered_content("kez", 3, 128), numbered_content("key\n", 3, 128),
        numbered_content("", 3, 128), numbered_content("key", 3, 192),
        numbered_content("key", 2, 128), numbered_content(std::string(5000, 'k'), 3, 128)}) {
    EXPECT_FALSE(read_packed_file(directory / "file", other, pool).ok()) << other.key;
  }
}

TEST(PackedFile, NamesTheFirstBlockThatCannotBePackedAndLeavesNoFile) {
  const TemporaryDirectory directory;
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    PackedContent content = numbered_content("key", 40, 64);
    content.pack = [](size_t block, std::byte*) -> Status {
      if (block < 7) return Ok{};
      return Error{
          .what = "block " + std::to_string(block), .expected = {}, .actual = {}, .fix = {}};
    };
    EXPECT_EQ(write_packed_file(directory / "file", content, pool).error().what, "block 7");
    EXPECT_EQ(pack_into_memory(content, pool).error().what, "block 7");
    EXPECT_EQ(directory.file_count(), 0u);
  }
}

// Every form of weights, of sizes with and without padding.
struct Forms {
  std::vector<Matrix> matrices;
  std::vector<SourceMatrix> sources;
};

Forms all_forms() {
  std::mt19937_64 random(5);
  Forms forms;
  for (const HalfFields& fields : block_encodings()) {
    forms.matrices.push_back(random_blocks(fields, 37, 512, random));
  }
  for (const Affine& affine : affine_encodings()) {
    forms.matrices.push_back(affine_matrix(affine, 37, 384, random));
  }
  for (const Encoding encoding : {Encoding::kF32, Encoding::kF16, Encoding::kBF16}) {
    forms.matrices.push_back(float_matrix(encoding, 37, 100, random));
    forms.matrices.push_back(float_matrix(encoding, 32, 64, random));
  }
  for (const Matrix& matrix : forms.matrices) {
    forms.sources.push_back({"tensor", 0, matrix.view});
  }
  return forms;
}

TEST(MatrixPacking, GivesTheMatricesThatPackingOneByOneGives) {
  const TemporaryDirectory directory;
  ThreadPool pool(3);
  const Forms forms = all_forms();
  for (const FloatMode floats :
       {FloatMode::kInt8Channel, FloatMode::kInt8Groups, FloatMode::kKeep}) {
    MatrixPacking packing = MatrixPacking::plan(forms.sources, floats).value();
    const PackedContent content = packing.content("some file\n");
    const std::string path = directory / std::to_string(static_cast<int>(floats));
    ASSERT_TRUE(write_packed_file(path, content, pool).ok());
    const PackedPayload payload = read_packed_file(path, content, pool).value();
    const std::vector<PackedLinear> matrices = std::move(packing).matrices(payload.bytes);
    ASSERT_EQ(matrices.size(), forms.sources.size());
    for (size_t i = 0; i < matrices.size(); ++i) {
      const TensorView& view = forms.sources[i].rows;
      const PackedLinear alone = PackedLinear::pack(view, 0, view.rows(), floats).value();
      ASSERT_EQ(matrices[i].byte_count(), alone.byte_count());
      EXPECT_EQ(std::memcmp(matrices[i].layout().panels, alone.layout().panels,
                            static_cast<size_t>(alone.byte_count())),
                0)
          << name_of(view.encoding) << static_cast<int>(floats);
    }
  }
}

// What a packed file holds depends on the code too. If this fails because panels are to lie in
// another way, give kPackedVersion a new number, and put the new checksums here.
TEST(MatrixPacking, WritesTheBytesOfItsVersion) {
  ThreadPool pool(1);
  const Forms forms = all_forms();
  std::vector<uint64_t> checksums;
  for (const FloatMode floats :
       {FloatMode::kInt8Channel, FloatMode::kInt8Groups, FloatMode::kKeep}) {
    const MatrixPacking packing = MatrixPacking::plan(forms.sources, floats).value();
    const PackedContent content = packing.content("");
    const PackedPayload payload = pack_into_memory(content, pool).value();
    checksums.push_back(checksum({payload.bytes, static_cast<size_t>(content.byte_count())}));
  }
  EXPECT_EQ(kPackedVersion, 2);
  EXPECT_THAT(checksums, ::testing::ElementsAre(9401779289930393306u, 2128228165984678989u,
                                                8192937088000655210u));
}

TEST(MatrixPacking, HasAKeyOfAllThatItDependsOn) {
  const Forms forms = all_forms();
  const auto key_of = [](const std::vector<SourceMatrix>& sources,
                         FloatMode floats = FloatMode::kInt8Channel,
                         const std::string& identity = "file\n") {
    return MatrixPacking::plan(sources, floats).value().content(identity).key;
  };
  const std::string key = key_of(forms.sources);
  EXPECT_EQ(key_of(forms.sources), key);
  EXPECT_NE(key_of(forms.sources, FloatMode::kKeep), key);
  EXPECT_NE(key_of(forms.sources, FloatMode::kInt8Channel, "another file\n"), key);
  std::vector<SourceMatrix> other = forms.sources;
  other[3].tensor = "another";
  EXPECT_NE(key_of(other), key);
  other = forms.sources;
  other[3].first_row = 16;
  EXPECT_NE(key_of(other), key);
  other = forms.sources;
  std::swap(other[0], other[1]);
  EXPECT_NE(key_of(other), key);
  for (const size_t at :
       {size_t{0}, forms.matrices[0].bytes.size() / 2, forms.matrices[0].bytes.size() - 1}) {
    std::vector<std::byte> bytes = forms.matrices[0].bytes;
    bytes[at] ^= std::byte{1};
    other = forms.sources;
    other[0].rows.bytes = bytes;
    EXPECT_NE(key_of(other), key) << at;
  }
  const size_t affine = block_encodings().size();
  for (auto part : {&BlockScales::scales, &BlockScales::offsets}) {
    const auto stored = forms.sources[affine].rows.beside.*part;
    std::vector<std::byte> bytes(stored.begin(), stored.end());
    bytes.back() ^= std::byte{1};
    other = forms.sources;
    other[affine].rows.beside.*part = bytes;
    EXPECT_NE(key_of(other), key);
  }
}

}  // namespace
}  // namespace espalier::units::cpu
