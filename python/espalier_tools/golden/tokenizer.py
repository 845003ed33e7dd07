"""Makes tests/golden/text/tokenizer: small vocabularies with what the libraries of their authors make of texts.

- tokenizer_<name>.json: a tokenizer.json of each kind of pipeline that real models have, and of random ones, with
  ids and decoded texts by the `tokenizers` library.
- <name>.gguf: metadata-only files, as llama.cpp's converters write them. Byte-level ones have the ids that the same
  pipeline gives in the `tokenizers` library, SentencePiece ones those of the sentencepiece library.

Run as `python -m espalier_tools.golden.tokenizer` from python/. Far more pipelines and texts, and the real vocabulary
of SmolLM2, are compared by hand with espalier_tools/golden/_tokenizer_compare.py.
"""

import io
import json
import random

import gguf
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from espalier_tools.golden import GOLDEN
from espalier_tools.golden import _tokenizer_compare as compare

FOLDER = GOLDEN / "text" / "tokenizer"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def encode_cases(tokenizer, texts, rng):
    cases = []
    for text in texts:
        add = rng.random() < 0.3
        cases.append({"text": text, "add": add, "ids": tokenizer.encode(text, add_special_tokens=add).ids})
    return cases


def decode_cases(tokenizer, count, rng):
    cases = []
    size = tokenizer.get_vocab_size()
    for _ in range(count):
        ids = [rng.randrange(size) for _ in range(rng.randint(1, 12))]
        skip = rng.random() < 0.5
        cases.append({"ids": ids, "skip": skip, "text": tokenizer.decode(ids, skip_special_tokens=skip)})
    return cases


def texts_of(rng, random_texts):
    return compare.SNIPPETS + [" ", "", "a" * 300] + [compare.random_text(rng) for _ in range(random_texts)]


def write_json(name, content):
    (FOLDER / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n")


def write_pipeline(name, tokenizer, rng, texts):
    content = {
        "tokenizer": json.loads(tokenizer.to_str()),
        "encode": encode_cases(tokenizer, texts, rng),
        "decode": decode_cases(tokenizer, 12, rng),
    }
    write_json(f"tokenizer_{name}", content)


def pipelines():
    """A tokenizer of each known kind, then random ones."""
    for kind in range(compare.KNOWN_KINDS):
        rng = random.Random(kind)
        yield f"known_{kind}", compare.random_tokenizer(rng, kind), rng
    for number in range(16):
        rng = random.Random(1000 + number)
        yield f"random_{number}", compare.random_tokenizer(rng, -1), rng


def train_byte_level(pre_tokenizer, normalizer=None, vocab_size=420):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, show_progress=False, special_tokens=["<|end|>", "<|im_start|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(compare.SNIPPETS * 3, trainer)
    return tokenizer


def write_gguf(name, kind, pre, tokens, types, **arrays):
    writer = gguf.GGUFWriter(str(FOLDER / f"{name}.gguf"), "llama")
    writer.add_tokenizer_model(kind)
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if "merges" in arrays:
        writer.add_token_merges(arrays["merges"])
    if "scores" in arrays:
        writer.add_token_scores(arrays["scores"])
    for key, value in arrays.get("flags", {}).items():
        (writer.add_bool if isinstance(value, bool) else writer.add_uint32)(f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def write_byte_level_ggufs():
    byte_level = pre_tokenizers.ByteLevel(False, use_regex=False)
    split = lambda pattern: pre_tokenizers.Split(Regex(pattern), "isolated")  # noqa: E731
    kinds = {
        "gpt-2": (pre_tokenizers.ByteLevel(False), None, False),
        "smollm": (pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]), None, False),
        "llama-bpe": (pre_tokenizers.Sequence([split(compare.LLAMA3), byte_level]), None, True),
        "lfm2": (pre_tokenizers.Sequence([split(compare.LLAMA3), byte_level]), None, True),
        "qwen2": (pre_tokenizers.Sequence([split(compare.QWEN2), byte_level]), normalizers.NFC(), False),
        "gpt-4o": (pre_tokenizers.Sequence([split(compare.GPT4O), byte_level]), None, False),
        "deepseek-v3": (
            pre_tokenizers.Sequence([split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(compare.DEEPSEEK3), byte_level]),
            None, False,
        ),
    }
    for number, (pre, (pre_tokenizer, normalizer, ignores_merges)) in enumerate(kinds.items()):
        rng = random.Random(100 + number)
        tokenizer = train_byte_level(pre_tokenizer, normalizer)
        data = json.loads(tokenizer.to_str())
        data["model"]["ignore_merges"] = ignores_merges
        tokenizer = Tokenizer.from_str(json.dumps(data))
        vocabulary = sorted(data["model"]["vocab"].items(), key=lambda item: item[1])
        tokens = [text for text, _ in vocabulary] + ["<think>"]
        tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
        types = [CONTROL if i < 2 else NORMAL for i in range(len(vocabulary))] + [USER_DEFINED]
        adds_bos = number % 2 == 1
        write_gguf(
            f"gguf_{pre}", "gpt2", pre, tokens, types, merges=[" ".join(m) for m in data["model"]["merges"]],
            flags={"bos_token_id": 1, "eos_token_id": 0, "add_bos_token": adds_bos},
        )
        texts = texts_of(rng, 12) + ["<|im_start|>user <think> <|end|>"]
        cases = encode_cases(tokenizer, texts, rng)
        for case in cases:
            if case["add"] and adds_bos:
                case["ids"] = [1] + case["ids"]
        write_json(f"gguf_{pre}", {"encode": cases, "decode": decode_cases(tokenizer, 12, rng)})


def sentence_piece_type(model, i, user_symbols):
    if model.is_unknown(i):
        return UNKNOWN
    if model.is_control(i):
        return CONTROL
    if model.is_byte(i):
        return BYTE
    return USER_DEFINED if model.id_to_piece(i) in user_symbols else NORMAL


USER_SYMBOLS = ["<sep>", "new york", "▁▁", "ab"]


def write_sentence_piece_ggufs():
    for number, options in enumerate(
        [
            {"byte_fallback": True},
            {"byte_fallback": True, "user_defined_symbols": USER_SYMBOLS},
            {"byte_fallback": False, "character_coverage": 0.98},
            {"byte_fallback": True, "add_dummy_prefix": False},
            {"byte_fallback": True, "remove_extra_whitespaces": True},
        ]
    ):
        rng = random.Random(200 + number)
        stored = io.BytesIO()
        sentences = [line for text in compare.SNIPPETS * 3 for line in text.split("\n") if line and "\x00" not in line]
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences), model_writer=stored, model_type="bpe", vocab_size=500 if options["byte_fallback"] else 220,
            hard_vocab_limit=False, minloglevel=2, num_threads=1,
            **({"normalization_rule_name": "identity", "remove_extra_whitespaces": False} | options),
        )
        model = sentencepiece.SentencePieceProcessor(model_proto=stored.getvalue())
        size = model.get_piece_size()
        write_gguf(
            f"sentencepiece_{number}", "llama", None, [model.id_to_piece(i) for i in range(size)],
            [sentence_piece_type(model, i, options.get("user_defined_symbols", [])) for i in range(size)], scores=[model.get_score(i) for i in range(size)],
            flags={
                "bos_token_id": model.bos_id(), "eos_token_id": model.eos_id(), "unknown_token_id": model.unk_id(),
                "add_bos_token": False, "add_space_prefix": options.get("add_dummy_prefix", True),
                "remove_extra_whitespaces": options.get("remove_extra_whitespaces", False),
            },
        )
        texts = [text for text in texts_of(rng, 25) if not any(s in text for s in ("<s>", "</s>", "<unk>", "\x00"))]
        texts += ["<sep>a", "a <sep> b<sep>", "new york  ab abab", " leading", "trailing  ", "▁", "two  blanks"]
        cases = [{"text": text, "add": False, "ids": model.encode(text)} for text in texts]
        write_json(f"sentencepiece_{number}", {"encode": cases, "decode": [{"ids": c["ids"], "skip": True, "text": model.decode(c["ids"])} for c in cases if 0 not in c["ids"]]})


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    for name, tokenizer, rng in pipelines():
        try:
            write_pipeline(name, tokenizer, rng, texts_of(rng, 12))
        except BaseException as error:  # the library panics on some random pipelines
            print(f"{name}: {str(error)[:100]}")
    write_byte_level_ggufs()
    write_sentence_piece_ggufs()


if __name__ == "__main__":
    main()
