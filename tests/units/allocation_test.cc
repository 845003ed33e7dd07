// Decoding allocates nothing: operator new of this binary counts, on every thread.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "espalier/units/cpu/cpu_unit.h"
#include "tests/units/tiny_model.h"

namespace {

std::atomic<int64_t> allocation_count{0};

void* counted(size_t size, size_t alignment) {
  allocation_count.fetch_add(1);
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return counted(size, 0); }
void* operator new(size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return counted(size, 0); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace espalier::units {
namespace {

// A prefill window, a tree and single rows, with both heads, on every kernel set.
TEST(Allocation, NeitherRunNorCommitNorEmbeddingLookupAllocates) {
  cpu::CpuUnit unit;
  const TinyModel model = tiny_model(TinyKind::kHybrid, {1, 32}, {64});
  for (const std::string& kernels : unit.kernel_names()) {
    CompileOptions options;
    options.threads = 2;
    options.kernels = kernels;
    const auto executable = compile(unit, model, options);
    const auto state = executable->create_state(64).value();
    const int64_t embedding = executable->weight_index("embedding");
    std::vector<float> embeddings(32 * kTinyHidden), logits(32 * kTinyVocab), values(32 * 5);
    std::vector<int32_t> indices(values.size()), positions(32), parents(32);
    const std::vector<int32_t> selected = rows_from(0, 32), whole = rows_from(0, 32);
    const CallOutputs outputs{.max_values = values, .max_indices = indices, .logits = logits};

    const int64_t before = allocation_count.load();
    for (const int32_t rows : {20, 1, 7, 1}) {
      for (int32_t row = 0; row < rows; ++row) {
        const auto at = static_cast<size_t>(row);
        executable->read_weight_rows(embedding, row, 1,
                                     std::span(embeddings).subspan(at * kTinyHidden, kTinyHidden));
        parents[at] = row - 1;
        positions[at] = static_cast<int32_t>(state->committed_length()) + row;
      }
      const auto count = static_cast<size_t>(rows);
      for (const auto head : {program::Head::kArgmax, program::Head::kLogits}) {
        executable->run(model.function(rows == 1 ? 1 : 32, 64, head),
                        {.row_count = rows,
                         .embeddings = std::span(embeddings).first(count * kTinyHidden),
                         .positions = std::span(positions).first(count),
                         .parents = std::span(parents).first(count),
                         .selected = std::span(selected).first(count)},
                        *state, outputs);
      }
      executable->commit(*state, std::span(whole).first(count));
    }
    EXPECT_EQ(allocation_count.load(), before) << kernels;
    EXPECT_EQ(state->committed_length(), 29);
  }
}

TEST(Allocation, TheCountSeesAllocations) {
  const int64_t before = allocation_count.load();
  const auto probe = std::make_unique<std::vector<int>>(100);
  EXPECT_GE(allocation_count.load(), before + 2);
  EXPECT_EQ(probe->size(), 100u);
}

}  // namespace
}  // namespace espalier::units
