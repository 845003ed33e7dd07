"""What transformers answers with nano's weights as they are shipped: tests/golden/nano.json.

The 8-bit weights of models/nano, dequantised to fp32, in transformers' Lfm2ForCausalLM with its own tokenizer and chat
template; greedy. Prompts are held-out cases of each kind, with their tools.

Run from python/:  python -m espalier_tools.golden.nano
"""

import json

import torch
from transformers import AutoTokenizer, Lfm2Config, Lfm2ForCausalLM

from espalier_tools.golden import GOLDEN
from espalier_tools.train import quantise, sources

MODEL = GOLDEN.parents[1] / "models" / "nano"
TARGET = GOLDEN / "nano.json"
COUNTS = {"values": 16, "foreign": 8, "wordings": 12, "small_talk": 8, "knowledge": 4, "refusal": 8, "extraction": 4}
LONGEST = 96  # tokens of an answer


def model() -> Lfm2ForCausalLM:
    tensors, config = quantise.load_checkpoint(MODEL)
    for key in ("quantization", "quantization_config"):
        del config[key]
    network = Lfm2ForCausalLM(Lfm2Config(**config, attn_implementation="eager")).eval()
    state = {name: x.transpose(1, 2) if x.dim() == 3 else x for name, x in tensors.items()}
    missing = network.load_state_dict(state, strict=False)
    assert missing.missing_keys == ["lm_head.weight"] and not missing.unexpected_keys, missing
    network.tie_weights()
    return network


@torch.no_grad()
def greedy(network: Lfm2ForCausalLM, prompt: list[int], stops: set[int]) -> tuple[list[int], float]:
    """The answer, and how near the second best token ever came: the least difference of two logits."""
    ids, margin = list(prompt), float("inf")
    while len(ids) < len(prompt) + LONGEST and (len(ids) == len(prompt) or ids[-1] not in stops):
        best = network(torch.tensor([ids]), use_cache=False).logits[0, -1].topk(2)
        margin = min(margin, float(best.values[0] - best.values[1]))
        ids.append(int(best.indices[0]))
    return ids[len(prompt) :], margin


def cases() -> list[dict]:
    from espalier_tools.train.nano.data_mix import DATA, word_list
    from espalier_tools.train.nano.evaluation import Evaluation

    evaluation = Evaluation(DATA, word_list(), sources.bfcl_folder())
    return [case for kind, count in COUNTS.items() for case in evaluation.cases(kind, count, seed=77)]


def main() -> None:
    network, tokenizer = model(), AutoTokenizer.from_pretrained(MODEL)
    stops = {tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|endoftext|>")}
    written = []
    for case in cases():
        prompt = tokenizer.apply_chat_template(
            case["messages"], tools=case["tools"] or None, add_generation_prompt=True, return_dict=False
        )
        tokens, margin = greedy(network, prompt, stops)
        written.append(
            {
                "tools": json.dumps(case["tools"], ensure_ascii=False) if case["tools"] else "",  # the order of keys counts
                "user": case["messages"][-1]["content"],
                "prompt_token_ids": prompt,
                "token_ids": tokens,
                "text": tokenizer.decode(tokens, skip_special_tokens=False),
                "least_margin": round(margin, 4),
            }
        )
    TARGET.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
