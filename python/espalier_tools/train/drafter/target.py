"""The target of a drafter: loaded from a HF directory or a GGUF file, run in torch, its answers written down.

`Transcript` is what training and evaluation read: the tokens of prompt and answer, the residual stream after the tapped
layers, and the target's distribution for the next token at each position.
"""

import dataclasses
import json
import pathlib
import struct
from collections.abc import Iterator

import numpy as np
import torch
from tokenizers import pre_tokenizers
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast

from espalier_tools.train.network import Linear, Network, Shape

TOP = 16  # next-token candidates that are kept of each position


def default_taps(layers: int, count: int = 3) -> tuple[int, ...]:
    """Layers to tap, evenly from the second to the third last (never the last: what loaders give there is normed)."""
    if layers < 5:
        raise ValueError(f"a target of {layers} layers: taps are for five or more")
    first, last = 1, max(3, layers - 3)
    return tuple(round(first + (last - first) * i / (count - 1)) for i in range(count))


def load_network(path: pathlib.Path) -> tuple[Network, PreTrainedTokenizerFast]:
    """The network in inference form (matrices in the type of products) and its tokenizer.

    A GGUF file, a directory of transformers' form, or one in 8 bits as nano is. ValueError for what is none of these.
    """
    if path.is_dir() and not (path / "config.json").exists():
        raise ValueError(f"{path}: no config.json; expected a model directory or a GGUF file")
    if not path.exists():
        raise ValueError(f"{path}: no such file or directory")
    if path.is_dir() and "quantization" in json.loads((path / "config.json").read_text()):
        from espalier_tools.train.nano import ship

        network, tokenizer = ship.load(path)
    else:
        model, tokenizer = load_transformers(path)
        network = _network_of(model)
    for parameter in network.parameters():
        if parameter.dim() == 2:
            parameter.data = parameter.data.to(Linear.products)
    return network.requires_grad_(False).eval(), tokenizer


def load_transformers(path: pathlib.Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """transformers' own model in fp32, with a tokenizer that is right for SmolLM2's GGUF, too."""
    folder, gguf = (path.parent, {"gguf_file": path.name}) if path.is_file() else (path, {})
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **gguf)
        tokenizer = AutoTokenizer.from_pretrained(folder, **gguf)
    except (OSError, struct.error, KeyError) as error:
        raise ValueError(f"{path}: transformers cannot load it: {error}") from error
    if gguf and _is_smollm(path):
        # transformers forgets the digit rule of this pre-tokenizer
        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    return model, tokenizer


def _network_of(model: PreTrainedModel) -> Network:
    with torch.device("meta"):
        network = Network(Shape.from_transformers(model.config))
    state = {name.removeprefix("model."): x for name, x in model.state_dict().items() if name != "lm_head.weight"}
    network.load_state_dict(state, assign=True)
    return network


def _is_smollm(path: pathlib.Path) -> bool:
    from gguf import GGUFReader

    field = GGUFReader(path).fields.get("tokenizer.ggml.pre")
    return field is not None and field.contents() == "smollm"


@dataclasses.dataclass
class Transcript:
    """One answer. Row i of taps and top_* belongs to token i; the last token was never fed and has none."""

    ids: np.ndarray  # int32 [T + 1]: prompt, answer
    prompt_length: int
    taps: np.ndarray  # bf16 bits as uint16 [T, taps * hidden]
    top_ids: np.ndarray  # int32 [T, TOP]: most probable next tokens, best first
    top_logits: np.ndarray  # fp16 [T, TOP]: their log-probabilities
    kind: str

    def tap_rows(self) -> Tensor:
        return torch.from_numpy(self.taps.view(np.int16)).view(torch.bfloat16)


class _Slot:
    """A sequence in generation: rows are appended call by call."""

    def __init__(self, prompt: list[int], kind: str, temperature: float):
        self.ids = list(prompt)
        self.prompt_length = len(prompt)
        self.kind = kind
        self.temperature = temperature
        self.rows: list[tuple[Tensor, Tensor, Tensor]] = []

    def take(self, taps: Tensor, top_ids: Tensor, top_logits: Tensor, token: int) -> None:
        self.rows.append((taps, top_ids, top_logits))
        self.ids.append(token)

    def transcript(self) -> Transcript:
        taps, top_ids, top_logits = (torch.cat(column) for column in zip(*self.rows))
        return Transcript(
            ids=np.array(self.ids, np.int32),
            prompt_length=self.prompt_length,
            taps=taps.view(torch.int16).numpy().view(np.uint16),
            top_ids=top_ids.int().numpy(),
            top_logits=top_logits.half().numpy(),
            kind=self.kind,
        )


@dataclasses.dataclass(frozen=True)
class Request:
    prompt: list[int]
    kind: str
    temperature: float = 0.0  # 0: greedy


class Generator:
    """Answers requests in `slots` sequences at once; a sequence that ends makes place for the next request.

    A pass over the weights serves all sequences, so slots are what makes generation cheap. Deterministic for a given
    order of requests and seed.
    """

    def __init__(self, network: Network, taps: tuple[int, ...], stops: set[int], slots: int, length: int, seed: int):
        self.network, self.taps, self.stops, self.length = network, taps, stops, length
        self.caches = network.cache(slots, length)
        self.slots: list[_Slot | None] = [None] * slots
        self.random = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def run(self, requests: Iterator[Request]) -> Iterator[Transcript]:
        """Transcripts in the order in which they end."""
        exhausted = False
        while True:
            for index, slot in enumerate(self.slots):
                while slot is None and not exhausted:
                    request = next(requests, None)
                    exhausted = request is None
                    if request is not None and len(request.prompt) < self.length - 8:
                        slot = self._prefill(index, request)
                        self.slots[index] = None if self._ended(slot) else slot
                        if self._ended(slot):
                            yield slot.transcript()
                            slot = None
            if all(slot is None for slot in self.slots):
                return
            self._step()
            for index, slot in enumerate(self.slots):
                if slot is not None and self._ended(slot):
                    self.slots[index] = None
                    yield slot.transcript()

    def _ended(self, slot: _Slot) -> bool:
        return slot.ids[-1] in self.stops or len(slot.ids) >= self.length

    def _prefill(self, index: int, request: Request) -> _Slot:
        slot = _Slot(request.prompt, request.kind, request.temperature)
        ids = torch.tensor([request.prompt])
        hidden, taps = self.network.extend(ids, self.caches, torch.tensor([index]), torch.tensor([0]), self.taps)
        logits, *top = self._top(hidden[0])
        rows = (self._side_by_side(taps, hidden)[0], *top)
        slot.take(*rows, self._choose(logits[-1], request.temperature))
        return slot

    def _top(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """hidden [rows, hidden] -> logits [rows, vocab], ids and log-probabilities of the best [rows, TOP]."""
        logits = self.network.logits(hidden)
        top = logits.topk(TOP, dim=-1)
        return logits, top.indices, top.values - logits.logsumexp(-1, keepdim=True)

    @staticmethod
    def _side_by_side(taps: list[Tensor], hidden: Tensor) -> Tensor:
        """[B, T, taps * hidden] bf16; no columns if nothing is tapped."""
        return torch.cat([hidden[..., :0], *taps], dim=-1).bfloat16()

    def _choose(self, logits: Tensor, temperature: float) -> int:
        if temperature == 0:
            return int(logits.argmax())
        return int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=self.random))

    def _step(self) -> None:
        starts = torch.tensor([0 if slot is None else len(slot.ids) - 1 for slot in self.slots])
        ids = torch.tensor([[0 if slot is None else slot.ids[-1]] for slot in self.slots])
        hidden, taps = self.network.extend(ids, self.caches, torch.arange(len(self.slots)), starts, self.taps)
        logits, best, log_probabilities = self._top(hidden[:, 0])
        taps = self._side_by_side(taps, hidden)[:, 0]
        for i, slot in enumerate(self.slots):
            if slot is not None:
                token = int(best[i, 0]) if slot.temperature == 0 else self._choose(logits[i], slot.temperature)
                slot.take(taps[i : i + 1], best[i : i + 1], log_probabilities[i : i + 1], token)
