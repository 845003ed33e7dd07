"""A model directory for tests of the command line: tests/golden/tiny_chat.

A byte-level BPE tokenizer of 320 tokens trained on the lines below, a ChatML template, and a Llama of two layers with
random weights: it talks nonsense, but everything that a real model directory has is there. expected.json has what
transformers says about it in fp32: rendered template, prompt ids, the greedy answer, and the score of a text.

Run from python/:  python -m espalier_tools.golden.tiny_chat
"""

import json
import math

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from espalier_tools.golden import GOLDEN

TARGET = GOLDEN / "tiny_chat"
CORPUS = [
    "An espalier is a tree trained to grow inside a fixed frame.",
    "The capital of France is Paris. What is the capital of Norway?",
    "Every shape is chosen at load; a step neither allocates nor reshapes.",
    "user assistant system: naïve café, 日本語, 3.14159, 2048 rows and 64 windows.",
]
CONTROL = ["<|bos|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role not in ['system', 'user', 'assistant', 'tool'] %}"
    "{{ raise_exception('unknown role ' + message.role) }}{% endif %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}{% if mood is defined %}{{ mood }}{% endif %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
PROMPT = "What is the capital of France?"
SYSTEM = "Answer with one word."
TEXT = "The capital of Norway is a tree trained to grow. " * 5
ANSWER_TOKENS = 24


def make_tokenizer() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=CONTROL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|bos|> $A", special_tokens=[("<|bos|>", 0)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|bos|>",
        eos_token="<|im_end|>",
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def make_model(vocab_size: int) -> LlamaForCausalLM:
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.3)
    return model


def score(model: LlamaForCausalLM, ids: list[int]) -> dict:
    """Teacher-forced: log-probabilities of each id after the first, and the most probable one there."""
    with torch.no_grad():
        logprobs = model(torch.tensor([ids])).logits[0, :-1].double().log_softmax(-1)
    chosen = logprobs.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    return {
        "text": TEXT,
        "ids": ids,
        "logprobs": [round(value, 6) for value in chosen.tolist()],
        "top1_ids": logprobs.argmax(-1).tolist(),
        "perplexity": round(math.exp(-chosen.mean().item()), 6),
    }


def main() -> None:
    tokenizer = make_tokenizer()
    model = make_model(len(tokenizer))
    TARGET.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(TARGET)
    tokenizer.save_pretrained(TARGET)
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    prompt_ids = tokenizer.encode(rendered, add_special_tokens=False)
    answer = model.generate(torch.tensor([prompt_ids]), max_new_tokens=ANSWER_TOKENS, do_sample=False)
    answer_ids = answer[0, len(prompt_ids) :].tolist()
    expected = {
        "system": SYSTEM,
        "prompt": PROMPT,
        "rendered": rendered,
        "prompt_token_ids": prompt_ids,
        "token_ids": answer_ids,
        "text": tokenizer.decode(answer_ids, skip_special_tokens=True),
        "score": score(model, tokenizer.encode(TEXT)),
    }
    (TARGET / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
