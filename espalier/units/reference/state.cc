#include "espalier/units/reference/state.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "espalier/base/check.h"
#include "espalier/base/json.h"
#include "espalier/program/ops.h"

namespace espalier::units::reference {
namespace {

using program::StateKind;

constexpr std::string_view kMagic = "espalier reference state 1\n";
constexpr size_t kMaxHeaderBytes = size_t{1} << 20;

Status check_kv_rows(const StateLayout& layout, int64_t kv_rows, int64_t least) {
  if (kv_rows >= least && kv_rows <= layout.max_kv_rows) return Ok{};
  return Error{.what = "state cannot have this many positions",
               .expected = fmt::format("{} to {}", least, layout.max_kv_rows),
               .actual = fmt::format("{}", kv_rows),
               .fix = "Choose a bucket that the programs were built for."};
}

Error out_of_memory(int64_t kv_rows) {
  return Error{.what = fmt::format("no memory for a state of {} positions", kv_rows),
               .expected = {},
               .actual = {},
               .fix = "Use a shorter context."};
}

Error bytes_error(std::string expected, std::string actual) {
  return Error{.what = "bytes are no state of this model on the reference unit",
               .expected = std::move(expected),
               .actual = std::move(actual),
               .fix = "Import what export_state gave for the same model."};
}

void copy_row(const std::vector<float>& from, int64_t from_row, std::vector<float>& to,
              int64_t to_row, int64_t channels) {
  std::copy_n(from.begin() + from_row * channels, channels, to.begin() + to_row * channels);
}

Json header_of(const StateLayout& layout, int64_t kv_rows, int64_t committed) {
  Json states = Json::array();
  for (const auto& state : layout.states) {
    states.push_back({{"name", state.name},
                      {"kind", program::name_of(state.kind)},
                      {"channels", state.shape.channels},
                      {"rows", state.kind == StateKind::kKeyValue ? committed : state.shape.rows}});
  }
  return {{"encoding", "f32"}, {"kv_rows", kv_rows}, {"committed", committed}, {"states", states}};
}

// The part of `bytes` between the magic line and the content.
Result<Json> read_header(std::span<const std::byte> bytes, size_t& content_offset) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) return bytes_error("the magic line", "something else");
  const size_t end = text.substr(0, kMaxHeaderBytes).find('\n', kMagic.size());
  if (end == std::string_view::npos) return bytes_error("a header line", "no end of line");
  content_offset = end + 1;
  return parse_json(text.substr(kMagic.size(), end - kMagic.size()), "state header");
}

}  // namespace

Result<std::unique_ptr<ReferenceState>> ReferenceState::make(const StateLayout& layout,
                                                             int64_t kv_rows) {
  RETURN_IF_ERROR(check_kv_rows(layout, kv_rows, 1));
  std::unique_ptr<ReferenceState> state(new ReferenceState(layout, kv_rows));
  try {
    state->allocate();
  } catch (const std::exception&) {  // bad_alloc, length_error
    return out_of_memory(kv_rows);
  }
  return state;
}

void ReferenceState::allocate() {
  parents_.reserve(static_cast<size_t>(layout_->max_window_rows));
  for (const auto& state : layout_->states) {
    const auto window = static_cast<size_t>(layout_->max_window_rows * state.shape.channels);
    StateRows rows;
    if (state.kind == StateKind::kKeyValue) {
      const auto bucket = static_cast<size_t>(kv_rows_ * state.shape.channels);
      for (auto* committed : {&rows.k, &rows.v}) committed->resize(bucket);
      for (auto* staged : {&rows.staged_k, &rows.staged_v}) staged->resize(window);
    } else {
      rows.conv.resize(static_cast<size_t>(state.shape.rows * state.shape.channels));
      rows.staged_conv.resize(window);
    }
    rows_.push_back(std::move(rows));
  }
}

int64_t ReferenceState::byte_count() const {
  size_t floats = 0;
  for (const auto& rows : rows_) {
    floats += rows.k.size() + rows.v.size() + rows.conv.size() + rows.staged_k.size() +
              rows.staged_v.size() + rows.staged_conv.size();
  }
  return static_cast<int64_t>(floats * sizeof(float));
}

Status ReferenceState::resize(int64_t kv_rows) {
  RETURN_IF_ERROR(check_kv_rows(*layout_, kv_rows, std::max<int64_t>(committed_, 1)));
  ASSIGN_OR_RETURN(std::unique_ptr<ReferenceState> resized, make(*layout_, kv_rows));
  resized->committed_ = committed_;
  const auto from = content();
  const auto to = resized->content();
  for (size_t i = 0; i < from.size(); ++i) std::copy(from[i].begin(), from[i].end(), to[i].begin());
  rows_ = std::move(resized->rows_);
  kv_rows_ = kv_rows;
  parents_.clear();
  return Ok{};
}

Status ReferenceState::truncate(int64_t length) {
  if (length < 0 || length > committed_) {
    return Error{.what = "state cannot be cut to this length",
                 .expected = fmt::format("0 to {} positions", committed_),
                 .actual = fmt::format("{}", length),
                 .fix = "Cut to a length that was reached."};
  }
  if (layout_->has_conv && length != 0 && length != committed_) {
    return Error{.what = "a model with convolutions cannot forget some positions",
                 .expected = "length 0",
                 .actual = fmt::format("{}", length),
                 .fix = "Start again from length 0, or import a state saved at that length."};
  }
  if (length == 0) {
    for (auto& rows : rows_) std::fill(rows.conv.begin(), rows.conv.end(), 0.0f);
  }
  committed_ = length;
  parents_.clear();
  return Ok{};
}

void ReferenceState::begin_window(std::span<const int32_t> parents) {
  parents_.assign(parents.begin(), parents.end());  // within the reserved capacity
}

void ReferenceState::commit(std::span<const int32_t> path) {
  const auto length = static_cast<int64_t>(path.size());
  CHECK_LE(committed_ + length, kv_rows_);
  int32_t parent = -1;
  for (const int32_t row : path) {
    CHECK(row >= 0 && static_cast<size_t>(row) < parents_.size());
    CHECK_EQ(parents_[static_cast<size_t>(row)], parent);
    parent = row;
  }
  for (size_t id = 0; id < rows_.size(); ++id) {
    StateRows& rows = rows_[id];
    const auto& shape = layout_->states[id].shape;
    for (int64_t i = 0; i < length; ++i) {
      const int64_t row = path[static_cast<size_t>(i)];
      if (layout_->states[id].kind == StateKind::kKeyValue) {
        copy_row(rows.staged_k, row, rows.k, committed_ + i, shape.channels);
        copy_row(rows.staged_v, row, rows.v, committed_ + i, shape.channels);
      } else {  // the oldest row leaves, the new one enters at the end
        std::copy(rows.conv.begin() + shape.channels, rows.conv.end(), rows.conv.begin());
        copy_row(rows.staged_conv, row, rows.conv, shape.rows - 1, shape.channels);
      }
    }
  }
  committed_ += length;
  parents_.clear();
}

std::vector<std::span<float>> ReferenceState::content() {
  std::vector<std::span<float>> parts;
  for (size_t id = 0; id < rows_.size(); ++id) {
    StateRows& rows = rows_[id];
    if (layout_->states[id].kind == StateKind::kKeyValue) {
      const auto used = static_cast<size_t>(committed_ * layout_->states[id].shape.channels);
      parts.push_back(std::span(rows.k).first(used));
      parts.push_back(std::span(rows.v).first(used));
    } else {
      parts.emplace_back(rows.conv);
    }
  }
  return parts;
}

std::vector<std::byte> ReferenceState::to_bytes() const {
  const std::string header =
      std::string(kMagic) + header_of(*layout_, kv_rows_, committed_).dump() + '\n';
  const auto header_bytes = std::as_bytes(std::span(header));
  std::vector<std::byte> bytes(header_bytes.begin(), header_bytes.end());
  for (const std::span<const float> part : const_cast<ReferenceState*>(this)->content()) {
    const auto part_bytes = std::as_bytes(part);
    bytes.insert(bytes.end(), part_bytes.begin(), part_bytes.end());
  }
  return bytes;
}

Result<std::unique_ptr<ReferenceState>> ReferenceState::from_bytes(
    const StateLayout& layout, std::span<const std::byte> bytes) {
  size_t offset = 0;
  ASSIGN_OR_RETURN(const Json header, read_header(bytes, offset));
  ASSIGN_OR_RETURN(const int64_t kv_rows, json_integer(header, "kv_rows"));
  ASSIGN_OR_RETURN(const int64_t committed, json_integer(header, "committed"));
  RETURN_IF_ERROR(check_kv_rows(layout, kv_rows, std::max<int64_t>(committed, 1)));
  if (committed < 0) return bytes_error("a length of 0 or more", fmt::format("{}", committed));
  if (const Json expected = header_of(layout, kv_rows, committed); header != expected) {
    return bytes_error(expected.dump().substr(0, 200), "a header of other states");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ReferenceState> state, make(layout, kv_rows));
  state->committed_ = committed;
  for (const std::span<float> part : state->content()) {
    if (bytes.size() - offset < part.size_bytes()) {
      return bytes_error(fmt::format("{} bytes more", part.size_bytes()),
                         fmt::format("{}", bytes.size() - offset));
    }
    if (!part.empty()) std::memcpy(part.data(), bytes.data() + offset, part.size_bytes());
    offset += part.size_bytes();
  }
  if (offset != bytes.size()) {
    return bytes_error("the end", fmt::format("{} bytes more", bytes.size() - offset));
  }
  return state;
}

}  // namespace espalier::units::reference
