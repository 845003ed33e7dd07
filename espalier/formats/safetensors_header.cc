#include "espalier/formats/safetensors_header.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "espalier/base/json.h"

namespace espalier::formats {
namespace {

// What the next value has to be.
enum class Expect { kHeader, kTensor, kMetadata, kText, kDtype, kShape, kOffsets, kAnything };

struct Field {
  std::string_view name;
  Expect value;
};
constexpr std::array kFields = {Field{"dtype", Expect::kDtype}, Field{"shape", Expect::kShape},
                                Field{"data_offsets", Expect::kOffsets}};
constexpr unsigned kAllFields = (1u << kFields.size()) - 1;

// nlohmann's streaming interface: a method returns false to stop, after setting `problem`.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  SafetensorsHeader header;
  std::string problem;

  bool null() override { return expect_ == Expect::kMetadata || unwanted("null"); }
  bool boolean(bool) override { return unwanted("true or false"); }
  bool number_integer(number_integer_t) override { return unwanted("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unwanted("a fraction"); }
  bool binary(binary_t&) override { return unwanted("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (list_ == nullptr) return unwanted("a number");
    list_->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (expect_ == Expect::kDtype) {
      header.tensors.back().dtype = std::move(value);
    } else if (expect_ == Expect::kText) {
      header.metadata[key_] = std::move(value);
    } else {
      return unwanted("a string");
    }
    return true;
  }

  bool start_object(size_t) override {
    if (expect_ > Expect::kMetadata) return skip_container("an object");
    ++level_;
    return true;
  }

  bool end_object() override {
    if (skipped_levels_ > 0) return leave_skipped();
    const bool was_tensor = --level_ == 1 && !in_metadata_;
    return !was_tensor || fields_seen_ == kAllFields || fail("lacks dtype, shape or data_offsets");
  }

  bool key(string_t& key) override {
    if (skipped_levels_ > 0) return true;
    key_ = std::move(key);
    if (level_ == 1) return start_entry();
    if (in_metadata_) {
      expect_ = Expect::kText;
      return true;
    }
    return start_field();
  }

  bool start_array(size_t) override {
    if (list_ != nullptr) return unwanted("a list");
    if (expect_ == Expect::kShape) {
      list_ = &header.tensors.back().shape;
    } else if (expect_ == Expect::kOffsets) {
      list_ = &header.tensors.back().offsets;
    } else {
      return skip_container("a list");
    }
    return true;
  }

  bool end_array() override {
    if (skipped_levels_ > 0) return leave_skipped();
    list_ = nullptr;
    return expect_ != Expect::kOffsets || header.tensors.back().offsets.size() == 2 ||
           fail("needs two data_offsets");
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    problem = json_problem(error);
    return false;
  }

 private:
  bool start_entry() {
    entry_ = key_;
    if (!names_.insert(key_).second) return fail("appears twice");
    in_metadata_ = key_ == "__metadata__";
    expect_ = in_metadata_ ? Expect::kMetadata : Expect::kTensor;
    fields_seen_ = 0;
    if (!in_metadata_) header.tensors.emplace_back().name = key_;
    return true;
  }

  bool start_field() {
    const auto* field = std::find_if(kFields.begin(), kFields.end(),
                                     [this](const Field& row) { return row.name == key_; });
    expect_ = field == kFields.end() ? Expect::kAnything : field->value;
    if (field == kFields.end()) return true;  // a field of a later version of the format
    const unsigned bit = 1u << (field - kFields.begin());
    if ((fields_seen_ & bit) != 0) return fail("has a field twice");
    fields_seen_ |= bit;
    return true;
  }

  bool skip_container(const char* what) {
    if (expect_ != Expect::kAnything) return unwanted(what);
    return ++skipped_levels_ <= kJsonDepthLimit || fail("is nested too deeply");
  }

  bool leave_skipped() {
    --skipped_levels_;
    return true;
  }

  bool unwanted(const char* what) {
    return expect_ == Expect::kAnything || fail(fmt::format("has {} in the wrong place", what));
  }

  bool fail(const std::string& why) {
    problem = expect_ == Expect::kHeader ? "it " + why : fmt::format("entry '{}' {}", entry_, why);
    return false;
  }

  Expect expect_ = Expect::kHeader;
  int level_ = 0;           // 1 in the header's object, 2 in an entry's
  int skipped_levels_ = 0;  // open containers of a value that is skipped
  bool in_metadata_ = false;
  unsigned fields_seen_ = 0;               // of the current tensor, a bit for each row of kFields
  std::vector<uint64_t>* list_ = nullptr;  // the list being filled
  std::string key_;
  std::string entry_;  // the tensor's name
  std::unordered_set<std::string> names_;
};

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                   const std::string& source) {
  HeaderReader reader;
  // The library takes a zero byte for the end of the text; in a header it hides what follows.
  if (json.find('\0') != std::string_view::npos) reader.problem = "it has a zero byte";
  if (reader.problem.empty()) Json::sax_parse(json, &reader);
  if (reader.problem.empty()) return std::move(reader.header);
  return Error{.what = fmt::format("{}: the safetensors header is not valid", source),
               .expected = "an object of tensors with dtype, shape and data_offsets",
               .actual = reader.problem,
               .fix = "Download or convert the file again."};
}

}  // namespace espalier::formats
