#include "espalier/text/jinja/represent.h"

#include <fmt/format.h>

#include "espalier/text/jinja/native.h"
#include "espalier/text/jinja/unicode.h"

namespace espalier::text::jinja {
namespace {

class Writer {
 public:
  explicit Writer(Budget& budget) : budget_(budget) {}

  Status write(const Value& value) {
    from_user_ |= value.from_user();
    if (++depth_ > Budget::kValueDepth) {
      return Error{.what = "a value holds itself, or is nested too deeply to print",
                   .expected = fmt::format("at most {} levels", Budget::kValueDepth),
                   .actual = "more",
                   .fix = "Print a part of it."};
    }
    const size_t before = out_.size();
    RETURN_IF_ERROR(write_kind(value));
    --depth_;
    RETURN_IF_ERROR(budget_.check_size(out_.size()));
    return budget_.spend(out_.size() - before + Budget::kStepBytes / 4);
  }
  Text finish() { return Text(out_, from_user_); }

 private:
  Status write_kind(const Value& value) {
    switch (value.kind()) {
      case Kind::kUndefined:
        return add("Undefined");
      case Kind::kNone:
        return add("None");
      case Kind::kBool:
        return add(value.boolean() ? "True" : "False");
      case Kind::kInt:
        return add(fmt::format("{}", value.integer()));
      case Kind::kFloat:
        return add(float_repr(value.number()));
      case Kind::kString:
        return write_string(value);
      case Kind::kList:
        return write_items(value.items(), "[", "]");
      case Kind::kTuple:
        return write_items(value.items(), "(", value.items().size() == 1 ? ",)" : ")");
      case Kind::kView:
        out_ += value.sequence().view_name;
        return write_items(value.items(), "([", "])");
      case Kind::kDict:
        return write_dict(value.dict());
      case Kind::kRange:
        return write_range(value.range());
      case Kind::kIterator:
        return add("<generator object>");
      case Kind::kNamespace:
        out_ += "<Namespace ";
        RETURN_IF_ERROR(write_dict(*value.name_space().attributes));
        return add(">");
      case Kind::kNative:
        return add(value.native().repr());
    }
    return Ok{};
  }

  Status add(std::string_view text) {
    out_ += text;
    return Ok{};
  }

  Status write_range(const Range& range) {
    out_ += fmt::format("range({}, {}", range.start, range.stop);
    if (range.step != 1) out_ += fmt::format(", {}", range.step);
    return add(")");
  }

  Status write_items(const Values& items, std::string_view open, std::string_view close) {
    out_ += open;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      RETURN_IF_ERROR(write(items[i]));
    }
    return add(close);
  }

  Status write_dict(const Dict& dict) {
    out_ += '{';
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      if (i > 0) out_ += ", ";
      RETURN_IF_ERROR(write(dict.entries[i].first));
      out_ += ": ";
      RETURN_IF_ERROR(write(dict.entries[i].second));
    }
    return add("}");
  }

  Status write_string(const Value& value) {
    if (value.is_markup()) out_ += "Markup(";
    write_quoted(value.text().bytes());
    if (value.is_markup()) out_ += ')';
    return Ok{};
  }

  void write_quoted(std::string_view text) {
    const bool has_single = text.find('\'') != std::string_view::npos;
    const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
    out_ += quote;
    for (size_t i = 0; i < text.size();) {
      const Character c = decode_at(text, i);
      if (c.code_point == static_cast<char32_t>(quote) || c.code_point == '\\') {
        out_ += '\\';
        out_ += static_cast<char>(c.code_point);
      } else if (is_printable(c.code_point)) {
        out_ += text.substr(i, c.size);
      } else {
        write_escape(c.code_point);
      }
      i += c.size;
    }
    out_ += quote;
  }

  void write_escape(char32_t c) {
    const auto code = static_cast<uint32_t>(c);
    if (c == '\n')
      out_ += "\\n";
    else if (c == '\r')
      out_ += "\\r";
    else if (c == '\t')
      out_ += "\\t";
    else if (code < 0x100)
      out_ += fmt::format("\\x{:02x}", code);
    else if (code < 0x10000)
      out_ += fmt::format("\\u{:04x}", code);
    else
      out_ += fmt::format("\\U{:08x}", code);
  }

  Budget& budget_;
  std::string out_;
  bool from_user_ = false;
  int depth_ = 0;
};

}  // namespace

Result<Text> repr(Budget& budget, const Value& value) {
  Writer writer(budget);
  RETURN_IF_ERROR(writer.write(value));
  return writer.finish();
}

Result<Text> to_text(Budget& budget, const Value& value) {
  if (value.is(Kind::kUndefined)) return Text();
  if (!value.is(Kind::kString)) return repr(budget, value);
  RETURN_IF_ERROR(budget.spend(value.text().size()));
  return value.text();
}

}  // namespace espalier::text::jinja
