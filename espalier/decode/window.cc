#include "espalier/decode/window.h"

#include <numeric>

#include "espalier/base/check.h"

namespace espalier::decode {

ChainWindows::ChainWindows(int64_t max_rows) {
  CHECK_GE(max_rows, 1);
  numbers_.resize(static_cast<size_t>(max_rows) + 1);
  std::iota(numbers_.begin(), numbers_.end(), -1);
}

std::span<const int32_t> ChainWindows::path(int64_t row_count) const {
  CHECK_LE(row_count, max_rows());
  return std::span(numbers_).subspan(1, static_cast<size_t>(row_count));
}

Window ChainWindows::chain(std::span<const TokenId> tokens, HeadKind head,
                           int64_t selected_count) const {
  CHECK(!tokens.empty());
  const auto row_count = static_cast<int64_t>(tokens.size());
  CHECK_LE(selected_count, row_count);
  return {.tokens = tokens,
          .parents = std::span(numbers_).first(tokens.size()),
          .selected = path(row_count).last(static_cast<size_t>(selected_count)),
          .head = selected_count == 0 ? HeadKind::kNone : head};
}

}  // namespace espalier::decode
