"""Conversations as token ids: nano's tokenizer, LFM2's chat format, and what of it the loss looks at."""

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


def pieces(conversation: dict) -> Iterator[tuple[str, bool]]:
    """The rendered conversation in pieces, each with whether it is trained; joined, it is what the chat template gives.

    A conversation with "text" instead of messages is prose: all of it is trained.
    """
    yield "<|startoftext|>", False
    if "text" in conversation:
        yield conversation["text"] + "<|endoftext|>", True
        return
    if conversation["tools"]:
        tools = ", ".join(json.dumps(tool, ensure_ascii=False) for tool in conversation["tools"])
        content = f"List of tools: <|tool_list_start|>[{tools}]<|tool_list_end|>"
        yield f"<|im_start|>system\n{content}<|im_end|>\n", False
    for message in conversation["messages"]:
        content = message["content"]
        if message["role"] == "tool":
            content = f"<|tool_response_start|>{content}<|tool_response_end|>"
        yield f"<|im_start|>{message['role']}\n", False
        yield f"{content}<|im_end|>", message["role"] == "assistant"
        yield "\n", False


class Encoder:
    """Conversations to ids and the mask of trained tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast):
        self.tokenizer = tokenizer.backend_tokenizer

    def encode(self, conversation: dict) -> tuple[list[int], list[bool]]:
        """Ids, and for each whether the loss asks for it. Pieces are encoded one by one, as a chat is fed."""
        ids, trained = [], []
        for text, loss in pieces(conversation):
            encoded = self.tokenizer.encode(text, add_special_tokens=False).ids
            ids += encoded
            trained += [loss] * len(encoded)
        return ids, trained
