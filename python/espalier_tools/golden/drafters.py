"""What the shipped drafters propose: tests/golden/drafters.json.

Taps are transformers' hidden states of the target in fp32, greedy answers are its own; the drafter computes in fp32 with
its 8-bit weights dequantised. For some anchors of each answer: the best tokens of every slot with their base logits, and
the chain that the Markov head makes of them.

Run from python/:  python -m espalier_tools.golden.drafters
"""

import json
import os
import pathlib

import torch
from transformers import AutoTokenizer

from espalier_tools.bench.install import cache_folder
from espalier_tools.golden import GOLDEN, nano
from espalier_tools.train.drafter import dspark
from espalier_tools.train.drafter.target import load_transformers

MODELS = GOLDEN.parents[1] / "models"
TARGET = GOLDEN / "drafters.json"
ANSWER = 40  # tokens
ANCHORS = (0, 1, 7, 20, 33)  # of an answer
BEST = 5
PROMPTS = {
    "smollm2-135m-drafter": ["What is the capital of France?", "Write a short poem about the sea."],
    "nano-drafter": ["hello there", "Set a timer for 25 minutes"],
}


def target_of(drafter: str) -> tuple[torch.nn.Module, object]:
    if drafter == "nano-drafter":
        return nano.model(), AutoTokenizer.from_pretrained(nano.MODEL)
    file = pathlib.Path(os.environ.get("ESPALIER_MODEL") or cache_folder() / "models" / "smollm2-135m-instruct.gguf")
    model, tokenizer = load_transformers(file)
    return model.eval(), tokenizer


@torch.no_grad()
def greedy(target, prompt: list[int]) -> tuple[list[int], torch.Tensor]:
    """Prompt and answer, and the hidden states after each layer [layers, rows, hidden] of all but the last token."""
    ids = list(prompt)
    while len(ids) < len(prompt) + ANSWER:
        found = target(torch.tensor([ids]), use_cache=False, output_hidden_states=True)
        ids.append(int(found.logits[0, -1].argmax()))
    return ids, torch.stack(found.hidden_states[1:])[:, 0]


@torch.no_grad()
def proposals(model: dspark.DSpark, ids: list[int], hidden: torch.Tensor, anchor: int) -> dict:
    """What the drafter says with `anchor` tokens committed and token `anchor` as the newest."""
    taps = torch.cat([hidden[i] for i in model.config.target_layer_ids], dim=-1)
    state = dspark.DraftState(model)
    state.append(taps[:anchor])
    base, _ = state.propose_base(ids[anchor])
    tokens = model.d2t if model.config.draft_vocab_size else torch.arange(model.config.vocab_size)
    best = base.topk(BEST, dim=-1)
    chain = [ids[anchor]]
    for slot in base:
        chain.append(int(tokens[(slot + state.markov_bias([chain[-1]])[0]).argmax()]))
    return {
        "committed": anchor,
        "best_tokens": tokens[best.indices].tolist(),
        "best_logits": [[round(value, 4) for value in row] for row in best.values.tolist()],
        "chain": chain[1:],
    }


def main() -> None:
    written = {}
    for name, prompts in PROMPTS.items():
        target, tokenizer = target_of(name)
        model = dspark.load(MODELS / name, target.get_input_embeddings().weight)
        written[name] = []
        for prompt in prompts:
            messages = [{"role": "user", "content": prompt}]
            begin = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
            ids, hidden = greedy(target, begin)
            rounds = [proposals(model, ids, hidden, len(begin) + offset) for offset in ANCHORS]
            written[name].append({"prompt": prompt, "prompt_tokens": len(begin), "token_ids": ids, "rounds": rounds})
    TARGET.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
