#include "espalier/text/tokenizer.h"

#include <algorithm>
#include <variant>

#include "espalier/base/utf8.h"
#include "espalier/text/added_tokens.h"
#include "espalier/text/bpe.h"
#include "espalier/text/normalizer.h"
#include "espalier/text/post_processor.h"
#include "espalier/text/pretokenizer.h"
#include "espalier/text/sentencepiece_bpe.h"

namespace espalier::text {
namespace {

using Model = std::variant<Bpe, SentencePieceBpe>;

constexpr TokenId kTokenIdLimit =
    1 << 24;  // far beyond any vocabulary; bounds what a file can make us allocate
constexpr size_t kTextLimitBytes = size_t{1} << 30;  // offsets are 32 bits wide

Error bad_token(const std::string& what, TokenId id) {
  return Error{.what = fmt::format("token {} of the tokenizer {}", id, what),
               .expected = "valid UTF-8 and an id within the vocabulary",
               .actual = "something else",
               .fix = "The tokenizer is damaged: get it again."};
}

Status check_tokens(const TokenizerData& data) {
  if (data.tokens.size() > static_cast<size_t>(kTokenIdLimit)) {
    return bad_token("is beyond the limit", kTokenIdLimit);
  }
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    if (invalid_utf8_at(data.tokens[id]))
      return bad_token("is not UTF-8", static_cast<TokenId>(id));
  }
  for (const AddedToken& token : data.added_tokens) {
    if (token.id < 0 || token.id >= kTokenIdLimit)
      return bad_token("is beyond the limit", token.id);
    if (invalid_utf8_at(token.content)) return bad_token("is not UTF-8", token.id);
  }
  return Ok{};
}

Result<Model> make_model(const TokenizerData& data) {
  if (data.model == TokenizerData::Model::kSentencePieceBpe) {
    ASSIGN_OR_RETURN(SentencePieceBpe model, SentencePieceBpe::make(data));
    return Model(std::move(model));
  }
  ASSIGN_OR_RETURN(Bpe model, Bpe::make(data));
  return Model(std::move(model));
}

SourcedText slice(SourcedText& text, Span span) {
  if (span.begin == 0 && span.end == text.text.size()) return std::move(text);
  Rewrite rewrite(text);
  rewrite.keep(span);
  return rewrite.take();
}

}  // namespace

struct Tokenizer::Impl {
  std::unique_ptr<const TokenizerData> data;  // at a fixed place: the model has views into it
  Normalizer normalizer;
  PreTokenizer pretokenizer;
  PostProcessor post_processor;
  Decoder decoder;
  DecodeStream bytes_stream;  // only asked for the bytes of single tokens
  AddedTokens added;
  Model model;
  int64_t vocab_size = 0;
  std::vector<bool> control = {};  // by id: what the model may not make of a user's text

  // One call of encode().
  struct Run {
    UserText user;
    RewriteBudget budget;
    BpeScratch scratch = {};
    std::vector<TokenId> ids = {};
  };

  Status encode_text(std::string_view text, Run& run) const;
  Status encode_section(SourcedText section, Run& run) const;
  Status encode_pieces(SourcedText text, Run& run) const;
  bool holds_control(const std::vector<TokenId>& ids, size_t begin) const;
  std::optional<std::string> text_of(TokenId id) const;
  const Vocabulary& vocabulary() const {
    return std::visit([](const auto& made) -> const Vocabulary& { return made.vocabulary(); },
                      model);
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Result<Tokenizer> Tokenizer::make(TokenizerData moved_data) {
  const auto ids = static_cast<int64_t>(moved_data.tokens.size());
  RETURN_IF_ERROR(check_tokens(moved_data));
  auto data = std::make_unique<const TokenizerData>(std::move(moved_data));
  ASSIGN_OR_RETURN(Normalizer normalizer, Normalizer::make(data->normalizer));
  ASSIGN_OR_RETURN(PreTokenizer pretokenizer, PreTokenizer::make(data->pre_tokenizer));
  ASSIGN_OR_RETURN(Decoder decoder, Decoder::make(data->decoder));
  ASSIGN_OR_RETURN(AddedTokens added, AddedTokens::make(*data, normalizer));
  const int64_t vocab_size = std::max<int64_t>(ids, int64_t{added.last_id()} + 1);
  ASSIGN_OR_RETURN(PostProcessor post_processor, PostProcessor::make(*data, vocab_size));
  ASSIGN_OR_RETURN(Model model, make_model(*data));
  DecodeStream bytes_stream = decoder.start();
  auto impl = std::make_unique<Impl>(Impl{.data = std::move(data),
                                          .normalizer = std::move(normalizer),
                                          .pretokenizer = std::move(pretokenizer),
                                          .post_processor = std::move(post_processor),
                                          .decoder = std::move(decoder),
                                          .bytes_stream = std::move(bytes_stream),
                                          .added = std::move(added),
                                          .model = std::move(model),
                                          .vocab_size = vocab_size});
  impl->control.resize(static_cast<size_t>(vocab_size));
  for (const AddedToken& token : impl->data->added_tokens) {
    impl->control[static_cast<size_t>(token.id)] = is_control_token(token);
  }
  return Tokenizer(std::move(impl));
}

Status Tokenizer::Impl::encode_text(std::string_view text, Run& run) const {
  const bool tracks =
      pretokenizer.needs_sources() || (added.has_normalized_control() && !run.user.empty());
  for (const TextPart& part : added.split_raw(text, run.user)) {
    if (part.token) {
      run.ids.push_back(*part.token);
      continue;
    }
    SourcedText section{
        .text = std::string(text.substr(part.span.begin, part.span.end - part.span.begin)),
        .tracked = tracks,
        .sources = {},
        .budget = &run.budget};
    for (size_t i = part.span.begin; tracks && i < part.span.end;) {
      const size_t size = character_at(text, i).size;
      section.sources.insert(section.sources.end(), size, static_cast<uint32_t>(i));
      i += size;
    }
    RETURN_IF_ERROR(encode_section(std::move(section), run));
  }
  return Ok{};
}

Status Tokenizer::Impl::encode_section(SourcedText section, Run& run) const {
  RETURN_IF_ERROR(normalizer.normalize(section));
  const std::vector<TextPart> parts = added.split_normalized(section, run.user);
  for (const TextPart& part : parts) {
    if (part.token) {
      run.ids.push_back(*part.token);
    } else {
      RETURN_IF_ERROR(encode_pieces(slice(section, part.span), run));
    }
  }
  return Ok{};
}

// The unknown token stands for characters that the vocabulary lacks: the one control token that any
// text may become.
bool Tokenizer::Impl::holds_control(const std::vector<TokenId>& ids, size_t begin) const {
  return std::any_of(ids.begin() + static_cast<ptrdiff_t>(begin), ids.end(), [&](TokenId id) {
    return control[static_cast<size_t>(id)] && id != data->unknown_id;
  });
}

Status Tokenizer::Impl::encode_pieces(SourcedText text, Run& run) const {
  ASSIGN_OR_RETURN(const PieceList list, pretokenizer.split(std::move(text)));
  for (const Span& piece : list.pieces) {
    const std::string_view view = list.text.view(piece);
    if (const auto* sentence_piece = std::get_if<SentencePieceBpe>(&model)) {
      sentence_piece->encode(view, run.ids);
      continue;
    }
    const Bpe& bpe = std::get<Bpe>(model);
    const size_t before = run.ids.size();
    bpe.encode(view, nullptr, run.scratch, run.ids);
    if (run.user.empty() || !holds_control(run.ids, before)) continue;
    run.ids.resize(before);  // the vocabulary alone has made a control token: once more without
    bpe.encode(view, &control, run.scratch, run.ids);
  }
  return Ok{};
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text,
                                               const EncodeOptions& options) const {
  const Span whole{0, text.size()};
  return encode_mixed(text, std::span<const Span>(&whole, options.parse_special ? 0 : 1), options);
}

Result<std::vector<TokenId>> Tokenizer::encode_mixed(std::string_view text,
                                                     std::span<const Span> user_text,
                                                     const EncodeOptions& options) const {
  if (text.size() > kTextLimitBytes) {
    return Error{.what = "the text is too long",
                 .expected = fmt::format("at most {} bytes", kTextLimitBytes),
                 .actual = fmt::format("{}", text.size()),
                 .fix = "Give it in parts."};
  }
  if (const std::optional<size_t> offset = invalid_utf8_at(text)) {
    return Error{.what = "the text is not valid UTF-8",
                 .expected = "UTF-8",
                 .actual = fmt::format("byte 0x{:02x} at offset {}",
                                       static_cast<unsigned char>(text[*offset]), *offset),
                 .fix = "Convert it to UTF-8."};
  }
  const Span whole{0, text.size()};
  const bool all_from_user = !options.parse_special && !text.empty();
  Impl::Run run{.user = UserText(all_from_user ? std::span<const Span>(&whole, 1) : user_text),
                .budget = RewriteBudget(text.size())};
  RETURN_IF_ERROR(impl_->encode_text(text, run));
  return impl_->post_processor.process(std::move(run.ids), options.add_special_tokens);
}

std::optional<std::string> Tokenizer::Impl::text_of(TokenId id) const {
  if (id < 0) return std::nullopt;
  if (const AddedToken* token = added.find(id)) return token->content;
  const auto index = static_cast<size_t>(id);
  if (index >= data->tokens.size() || data->tokens[index].empty()) return std::nullopt;
  return data->tokens[index];
}

std::string Tokenizer::token_bytes(TokenId id) const {
  const std::optional<std::string> text = impl_->text_of(id);
  if (!text) return "";
  return impl_->added.find(id) != nullptr ? *text : impl_->bytes_stream.bytes_of(*text);
}

std::optional<std::string> Tokenizer::decoder_text(TokenId id, bool skip_special_tokens) const {
  std::optional<std::string> text = impl_->text_of(id);
  if (impl_->added.find(id) != nullptr) text = impl_->added.decoder_form(id);
  if (text && skip_special_tokens && impl_->added.is_special_text(*text)) return std::nullopt;
  return text;
}

DecodeStream Tokenizer::start_decoding() const { return impl_->decoder.start(); }

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  DecodeStream stream = start_decoding();
  std::string out;
  for (const TokenId id : ids) {
    const std::optional<std::string> text = decoder_text(id, skip_special_tokens);
    if (text) out += stream.push(*text);
  }
  return out + stream.finish();
}

int64_t Tokenizer::vocab_size() const { return impl_->vocab_size; }

std::optional<TokenId> Tokenizer::token_id(std::string_view piece) const {
  if (const std::optional<TokenId> id = impl_->added.id_of(piece)) return id;
  const auto found = impl_->vocabulary().find(piece);
  return found == impl_->vocabulary().end() ? std::nullopt : std::optional(found->second);
}

std::string Tokenizer::piece(TokenId id) const { return impl_->text_of(id).value_or(""); }

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* token = impl_->added.find(id);
  return token != nullptr && token->special;
}

const TokenizerData& Tokenizer::data() const { return *impl_->data; }

}  // namespace espalier::text
