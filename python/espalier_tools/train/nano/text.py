"""Conversations as token ids: nano's tokenizer, LFM2's chat format, and what of it the loss looks at."""

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Iterator

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

# The ids are those of LFM2's own vocabulary of 65,536; the last is what a drafter's mask tokens use.
CONTROL = [
    "<|pad|>",
    "<|startoftext|>",
    "<|endoftext|>",
    "<|fim_pre|>",
    "<|fim_mid|>",
    "<|fim_suf|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|tool_list_start|>",
    "<|tool_list_end|>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<|tool_response_start|>",
    "<|tool_response_end|>",
    "<|mask|>",
]
# Words keep no blank, and quotes, brackets and "=" stand alone, so that a value has the same tokens in a request and in
# a call; what joins two JSON strings is one piece, so that lists of tools are short.
PIECES = (
    r'"[}\])]*[:,] [{\[]*"|[\p{L}\p{M}_]+|\p{N}|[="(\[{}\])]+|[^\s\p{L}\p{M}\p{N}_="(\[{}\])]+ ?|\s+'
)
TEMPLATE = pathlib.Path(__file__).with_name("data") / "chat_template.jinja"
VOCAB = 4096


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A byte-level BPE of VOCAB tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=CONTROL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|startoftext|> $A", special_tokens=[("<|startoftext|>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|startoftext|>",
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
        chat_template=TEMPLATE.read_text(),
        clean_up_tokenization_spaces=False,
    )


@dataclasses.dataclass(frozen=True)
class Piece:
    """A part of a rendered conversation: whether it is trained, and the function that its last token shall know of."""

    text: str
    trained: bool = False
    hint: str | None = None


def pieces(conversation: dict) -> Iterator[Piece]:
    """The rendered conversation in pieces; joined, they are what the chat template gives.

    A conversation with "text" instead of messages is prose: all of it is trained. Hints stand at the end of requests
    ("intent" of a message) and of tools' descriptions ("origins": the names that tools had before renaming).
    """
    yield Piece("<|startoftext|>")
    if "text" in conversation:
        yield Piece(conversation["text"] + "<|endoftext|>", True)
        return
    if conversation["tools"]:
        yield Piece("<|im_start|>system\nList of tools: <|tool_list_start|>")
        yield from _tool_pieces(conversation)
        yield Piece("<|tool_list_end|><|im_end|>\n")
    for message in conversation["messages"]:
        content = message["content"]
        if message["role"] == "tool":
            content = f"<|tool_response_start|>{content}<|tool_response_end|>"
        yield Piece(f"<|im_start|>{message['role']}\n")
        yield Piece(f"{content}<|im_end|>", message["role"] == "assistant", message.get("intent"))
        yield Piece("\n")


def _tool_pieces(conversation: dict) -> Iterator[Piece]:
    """The tools' JSON, cut behind each description where a token ends there in any case."""
    texts = [json.dumps(tool, ensure_ascii=False) for tool in conversation["tools"]]
    inner = [tool.get("function", tool) for tool in conversation["tools"]]
    names = conversation.get("origins") or [tool["name"] for tool in inner]
    before = "["
    for text, tool, name in zip(texts, inner, names):
        description = json.dumps(tool["description"], ensure_ascii=False)[:-1]
        end = text.index(f'"description": {description}') + len('"description": ' + description)
        if description[-1].isalpha():
            yield Piece(before + text[:end], hint=name)
            before = text[end:] + ", "
        else:
            before += text + ", "
    yield Piece(before.removesuffix(", ") + "]")


@dataclasses.dataclass
class Encoded:
    """Token ids, which of them the loss asks for, and (place, token) of the hints."""

    ids: list[int]
    trained: list[bool]
    hints: list[tuple[int, int]]


class Encoder:
    """Conversations to ids and to what is trained of them."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.tokenizer = tokenizer.backend_tokenizer

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def encode(self, conversation: dict) -> Encoded:
        """Pieces are encoded one by one, as a chat is fed. A hint is the first token of a function's name."""
        encoded = Encoded([], [], [])
        for piece in pieces(conversation):
            ids = self._ids(piece.text)
            encoded.ids += ids
            encoded.trained += [piece.trained] * len(ids)
            if piece.hint:
                encoded.hints.append((len(encoded.ids) - 1, self._ids(piece.hint)[0]))
        return encoded
