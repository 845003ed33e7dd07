"""Holds Espalier's tokenizer against the `tokenizers` library on random pipelines and texts.

    python -m espalier_tools.golden._tokenizer_compare random BINARY [--seed N] [--pipelines N] [--texts N]
    python -m espalier_tools.golden._tokenizer_compare real BINARY model.gguf [--characters N]

BINARY is tokenizer_compare, which the tests build. `random` makes pipelines of all parts, trains small
vocabularies and compares ids, decoded text and streamed text. `real` compares a byte-level GGUF vocabulary
(smollm) on files of this machine, code and random Unicode. Both print every difference and the figures.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
    r"|\s*[\r\n]|\s+(?!\S)|\s"
)
PATTERNS = [
    LLAMA3, QWEN2, GPT4O, DEEPSEEK3, CL100K, r"\s", r"\S+", r"\w+", r"\W", r"\d{1,3}", r"[^\w\s]+", r"\p{P}",
    r"[\p{L}&&[^a-z]]+", r"[[:alpha:]]+", r"[[:punct:]]", r"\b", r"(?<=\d)(?=(\d{3})+)", r"a*", "", r"^.", r".$",
    r"(?m:a.)", r"\h+", r"[^\S\n]+", r"\p{Han}+", r"[一-龥぀-ゟ゠-ヿ]+", r"\R", r"(?i)the|and", r"\p{Lu}\p{Ll}*",
    r"\p{M}", r"\p{Cn}", r"\p{S}+", r"(?=\p{Lu})", r"[\u0041-\u005a]", r"\x{e9}", r"x{0,2}", r"\p{^L}+", r"[[:^space:]]+",
    r"[[:alnum:]]+", r"[[:digit:]]+", r"[[:upper:]]+", r"[[:lower:]]+", r"\p{Alphabetic}+", r"\p{Zs}", r"\p{Nd}|\p{No}",
]
STRINGS = ["a", " ", "the", "\n", "é", "-", "▁", "ab", ".", "\t", "1", "世"]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<s>", "</s>", "[MASK]"]
PLAIN = ["<think>", "  ", "\n\n", "new york", "Straße", "ab", "é", "the", "Ａ", "🙂", "x", "<s><s>"]

SNIPPETS = [
    "def f(x: int) -> str:\n    return f'{x!r}'\n", "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\r\n}\r\n",
    "Hello, world!", "I'll don't WE'RE it's 'S 'ſ", "你好，世界。今天天气很好", "日本語のテキスト", "한국어 문장 각", "مرحبا بالعالم ١٢٣",
    "שלום עולם", "हिन्दी में", "ภาษาไทยไม่มีช่องว่าง", "👩‍👩‍👧‍👦👍🏽🏳️‍🌈", "e\u0301a\u0308\u0323o\u0327", "\u0301\u0301", "Å ﬁ ½ ①  ™ ℌ",
    "1234567890 3.14159 1,000,000", "   7  42\t\t9", "\r\n\r\n", "\n \n  \n", "\u00a0\u2003\u3000\u200b\u200d\ufeff\u0085",
    "\x00\x01\x7f\x9f", "İstanbul ŞĞ ǅ ß ẞ Σς", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "https://example.com/a?b=c&d=%20#e",
    "<div class=\"x\">", "\u0e33\u0f73\u0344\u1e9b\u0323", "🇩🇪🇫🇷", "ﾊﾟﾋﾞ ﾡￂ", "①②③⑴", "ⅫⅣ", "x²+y³=½", "_under_score_", "a\u200db",
    "\U000313aa\U0001e030\U00010d50\U0001fbf5\u32ff", "the new york Straße and THE",
]


def random_text(rng, size=None):
    parts = []
    for _ in range(size or rng.randint(0, 12)):
        kind = rng.randrange(12)
        if kind < 5:
            parts.append(rng.choice(SNIPPETS))
        elif kind == 5:
            parts.append(rng.choice([" ", "  ", "\n", "\t", "   "]))
        elif kind == 6:
            parts.append("".join(random_character(rng, 0x10FFFF) for _ in range(rng.randint(1, 20))))
        elif kind == 7:
            parts.append("".join(random_character(rng, 0xFFFF) for _ in range(rng.randint(1, 20))))
        elif kind == 8:
            parts.append("".join(random_character(rng, 0x2FF) for _ in range(rng.randint(1, 20))))
        elif kind == 9:
            parts.append("".join(rng.choice("abcdehinorstuABX19 .,'-_\n") for _ in range(rng.randint(1, 30))))
        elif kind == 10:
            parts.append(rng.choice(SPECIAL + PLAIN))
        else:
            low = rng.choice([0x300, 0x590, 0x900, 0x1100, 0x2000, 0x3040, 0xAC00, 0x1F300, 0x10380, 0x1D100, 0xFE00])
            parts.append("".join(chr(low + rng.randrange(0x100)) for _ in range(rng.randint(1, 12))))
    return "".join(parts)


def random_character(rng, limit):
    while True:
        c = rng.randint(0, limit)
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def pattern(rng):
    if rng.random() < 0.25:
        return rng.choice(STRINGS)
    return Regex(rng.choice(PATTERNS))


def random_normalizer(rng, depth=0):
    kind = rng.randrange(14 if depth else 16)
    if kind >= 13:
        return normalizers.Sequence([random_normalizer(rng, depth + 1) for _ in range(rng.randint(0, 3))])
    return [
        normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD, normalizers.Lowercase,
        lambda: normalizers.Strip(rng.random() < 0.5, rng.random() < 0.5), normalizers.StripAccents,
        lambda: normalizers.Replace(pattern(rng), rng.choice(["", " ", "▁", "xy", "é"])),
        lambda: normalizers.Prepend(rng.choice(["▁", "ab", " "])), normalizers.Nmt, normalizers.ByteLevel,
        lambda: normalizers.BertNormalizer(*(rng.choice(o) for o in [[True, False]] * 2 + [[None, True, False]] + [[True, False]])),
        lambda: normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
    ][kind]()


BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]


def random_pre_tokenizer(rng, depth=0):
    kind = rng.randrange(14 if depth else 18)
    if kind >= 12:
        return pre_tokenizers.Sequence([random_pre_tokenizer(rng, depth + 1) for _ in range(rng.randint(0, 3))])
    return [
        lambda: pre_tokenizers.Split(pattern(rng), rng.choice(BEHAVIORS), rng.random() < 0.3),
        lambda: pre_tokenizers.Split(Regex(rng.choice([LLAMA3, QWEN2, GPT4O, CL100K])), "isolated"),
        lambda: pre_tokenizers.Digits(rng.random() < 0.5),
        lambda: pre_tokenizers.ByteLevel(rng.random() < 0.5, use_regex=rng.random() < 0.5),
        lambda: pre_tokenizers.Metaspace(rng.choice("▁▁_ "), rng.choice(["first", "always", "never"]), rng.random() < 0.5),
        pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit,
        lambda: pre_tokenizers.Punctuation(rng.choice(BEHAVIORS)), pre_tokenizers.BertPreTokenizer,
        lambda: pre_tokenizers.CharDelimiterSplit(rng.choice("a- é")),
        lambda: pre_tokenizers.ByteLevel(False, use_regex=False),
        lambda: pre_tokenizers.FixedLength(rng.randint(1, 9)),
    ][kind]()


def random_decoder(rng, depth=0):
    kind = rng.randrange(9 if depth else 14)
    if kind >= 9:
        return decoders.Sequence([random_decoder(rng, depth + 1) for _ in range(rng.randint(0, 4))])
    return [
        decoders.ByteLevel, decoders.ByteFallback, decoders.Fuse, lambda: decoders.Strip(rng.choice(" ▁ha"), rng.randint(0, 2), 0),
        lambda: decoders.Replace(pattern(rng), rng.choice(["", " ", "xy"])),
        lambda: decoders.Metaspace("▁", rng.choice(["first", "always", "never"])), decoders.BPEDecoder,
        lambda: decoders.Replace("▁", " "), decoders.ByteLevel,
    ][kind]()


# Pipelines as real models have them; the rest of the time anything goes.
KNOWN_KINDS = 7


def known_pipeline(rng, tokenizer, kind):
    byte_level = pre_tokenizers.ByteLevel(False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    if kind == 0:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(rng.random() < 0.5)
    elif kind == 1:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), byte_level])
    elif kind == 2:
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"), byte_level])
    elif kind == 3:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])
    elif kind == 4:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(p), "isolated") for p in (r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3)] + [byte_level]
        )
    elif kind == 5:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace("▁", rng.choice(["first", "always"]), rng.random() < 0.3)
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        )
    return kind >= 5


def random_model_options(rng, falls_back):
    options = {}
    if falls_back or rng.random() < 0.3:
        options["byte_fallback"] = True
    if falls_back or rng.random() < 0.5:
        options["unk_token"] = "<unk>"
        options["fuse_unk"] = rng.random() < 0.5
    options["ignore_merges"] = rng.random() < 0.3
    return options


def decorate(model, prefix, suffix):
    """Gives a model a continuing_subword_prefix and an end_of_word_suffix: every token in all its positions. (The trainer can
    do that too, but numbers such tokens by lot.)"""

    def form(token, is_first, is_last):
        return ("" if is_first else prefix) + token + (suffix if is_last else "")

    positions = [(first, last) for first in (True, False) for last in (False, True)]
    tokens = dict.fromkeys(form(token, *position) for token in model["vocab"] for position in positions)
    merges = dict.fromkeys(
        (form(a, first, False), form(b, False, last)) for a, b in map(tuple, model["merges"]) for first, last in positions
    )
    kept = dict.fromkeys([*model["vocab"], *tokens])  # plain tokens first: they keep their ids
    model |= {"vocab": {token: i for i, token in enumerate(kept)}, "merges": [list(merge) for merge in merges]}
    model |= {"continuing_subword_prefix": prefix or None, "end_of_word_suffix": suffix or None}


def random_tokenizer(rng, kind=None):
    """`kind`: one of the known pipelines, or -1 for a pipeline of random parts; by lot where None."""
    kind = rng.randrange(-KNOWN_KINDS, KNOWN_KINDS) if kind is None else kind
    tokenizer = Tokenizer(models.BPE())
    falls_back = False
    if kind >= 0:
        falls_back = known_pipeline(rng, tokenizer, kind)
    else:
        if rng.random() < 0.6:
            tokenizer.normalizer = random_normalizer(rng)
        if rng.random() < 0.9:
            tokenizer.pre_tokenizer = random_pre_tokenizer(rng)
        if rng.random() < 0.8:
            tokenizer.decoder = random_decoder(rng)
    options = random_model_options(rng, falls_back)
    tokenizer.model = models.BPE(**options)
    special = ["<unk>"] if "unk_token" in options else []
    if options.get("byte_fallback"):
        special += [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=rng.randint(300, 900), show_progress=False, special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if rng.random() < 0.7 else [], max_token_length=rng.choice([None, 12]),
    )
    # Few characters, so that texts have unknown ones; limit_alphabet would choose among equals by lot.
    words = ["".join(rng.choice("abcdehinorstuABX19 .,'-_\n") for _ in range(60)) for _ in range(40)]
    tokenizer.train_from_iterator(words + rng.sample(SNIPPETS, len(SNIPPETS) // 2) * 3, trainer)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
    if rng.random() < 0.25:
        decorate(data["model"], rng.choice(["", "##"]), rng.choice(["", "</w>"]))
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.add_special_tokens(rng.sample(SPECIAL, rng.randint(0, len(SPECIAL))))
    tokenizer.add_tokens(
        [
            AddedToken(
                text, lstrip=rng.random() < 0.3, rstrip=rng.random() < 0.3, single_word=rng.random() < 0.3,
                normalized=rng.random() < 0.5, special=rng.random() < 0.2,
            )
            for text in rng.sample(PLAIN, rng.randint(0, 6))
        ]
    )
    if rng.random() < 0.5:
        contents = sorted(t.content for t in tokenizer.get_added_tokens_decoder().values())
        name = rng.choice([c for c in contents if not set(c) & set(" \n")] or ["a"])
        number = tokenizer.token_to_id(name)
        if number is not None:
            tokenizer.post_processor = rng.choice(
                [
                    processors.TemplateProcessing(single=f"{name} $A", special_tokens=[(name, number)]),
                    processors.TemplateProcessing(single=f"$A {name}", special_tokens=[(name, number)]),
                    processors.BertProcessing((name, number), (name, number)),
                    processors.Sequence(
                        [processors.ByteLevel(), processors.TemplateProcessing(single=f"{name} $A", special_tokens=[(name, number)])]
                    ),
                ]
            )
    return tokenizer


class Compared:
    """The C++ side, and the count of what has been compared."""

    def __init__(self, binary, *files):
        self.process = subprocess.Popen([binary, *map(str, files)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.hello = json.loads(self.process.stdout.readline())

    def ask(self, **request):
        self.process.stdin.write((json.dumps(request) + "\n").encode())
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"tokenizer_compare died of {json.dumps(request)}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare_texts(compared, tokenizer, texts, rng, name):
    """Returns (characters, differences)."""
    characters = differences = 0
    for text in texts:
        add, special = rng.random() < 0.5, rng.random() < 0.9
        tokenizer.encode_special_tokens = not special
        try:
            expected = tokenizer.encode(text, add_special_tokens=add).ids
        except BaseException as error:  # a panic of the library: nothing to compare with
            print(f"{name}: library fails: {str(error)[:80]}")
            continue
        finally:
            tokenizer.encode_special_tokens = False
        characters += len(text)
        actual = compared.ask(text=text, add=add, special=special)
        # Without control text Espalier is stricter than the library: see added_tokens.h.
        if actual.get("ids") != expected and (special or not any(t in text for t in PLAIN + SPECIAL)):
            differences += 1
            print(f"{name}: text {text!r} add {add} special {special}\n  expected {expected}\n  actual {actual}")
        vocab_size = tokenizer.get_vocab_size()
        ids = expected if rng.random() < 0.5 else [rng.randrange(vocab_size + 3) for _ in range(rng.randint(1, 20))]
        skip = rng.random() < 0.5
        try:
            decoded = tokenizer.decode(ids, skip_special_tokens=skip)
        except BaseException as error:
            print(f"{name}: library fails to decode: {str(error)[:80]}")
            continue
        answer = compared.ask(ids=ids, skip=skip)
        if answer["text"] != decoded or answer["streamed"] != decoded:
            differences += 1
            print(f"{name}: ids {ids} skip {skip}\n  expected {decoded!r}\n  actual {answer}")
    return characters, differences


def has_defined_added_tokens(tokenizer):
    """The library takes any of several added tokens with one normalised form, and splits everywhere at an empty one."""
    forms = [
        tokenizer.normalizer.normalize_str(t.content) if t.normalized and tokenizer.normalizer else t.content
        for t in tokenizer.get_added_tokens_decoder().values()
    ]
    return "" not in forms and len(set(forms)) == len(forms)


def compare_random(binary, seed, pipelines, texts):
    total = [0, 0]
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(seed, seed + pipelines):
            rng = random.Random(number)
            path = pathlib.Path(folder) / "tokenizer.json"
            try:
                random_tokenizer(rng).save(str(path))
                tokenizer = Tokenizer.from_file(str(path))
            except BaseException as error:
                print(f"pipeline {number}: library fails: {str(error)[:80]}")
                continue
            if not has_defined_added_tokens(tokenizer):
                continue
            compared = Compared(binary, path)
            if "error" in compared.hello:
                refused += 1
                print(f"pipeline {number}: refused: {compared.hello['error'][:300]}")
                continue
            result = compare_texts(compared, tokenizer, [random_text(rng) for _ in range(texts)], rng, f"pipeline {number}")
            if result[1]:
                data = json.loads(path.read_text())
                del data["model"]["vocab"], data["model"]["merges"]
                print(f"pipeline {number} is {json.dumps(data, ensure_ascii=False)[:1500]}")
            compared.close()
            total = [a + b for a, b in zip(total, result)]
    print(f"{pipelines} pipelines, {refused} refused, {total[0]} characters, {total[1]} differences")
    return total[1]


def compare_real(binary, gguf, wanted):
    from gguf import GGUFReader

    fields = GGUFReader(gguf).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, k in zip(tokens, types) if k == 3])
    compared = Compared(binary, gguf)
    rng = random.Random(1)
    total = [0, 0]
    roots = [pathlib.Path(p) for p in ("/usr/share", "/usr/include", "/usr/lib/python3", sys.prefix)]
    files = sorted(p for root in roots for p in root.rglob("*") if p.is_file() and not p.is_symlink() and p.stat().st_size < 200_000)
    rng.shuffle(files)
    for path in files:
        if total[0] > wanted // 2:
            break
        text = path.read_bytes()[:8000].decode(errors="ignore")
        result = compare_texts(compared, tokenizer, [text], rng, str(path))
        total = [a + b for a, b in zip(total, result)]
    while total[0] < wanted:
        result = compare_texts(compared, tokenizer, [random_text(rng, 200)], rng, "random")
        total = [a + b for a, b in zip(total, result)]
    print(f"{total[0]} characters, {total[1]} differences")
    return total[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["random", "real"])
    parser.add_argument("binary")
    parser.add_argument("gguf", nargs="?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pipelines", type=int, default=100)
    parser.add_argument("--texts", type=int, default=30)
    parser.add_argument("--characters", type=int, default=2_000_000)
    options = parser.parse_args()
    if options.mode == "random":
        differences = compare_random(options.binary, options.seed, options.pipelines, options.texts)
    else:
        differences = compare_real(options.binary, options.gguf, options.characters)
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
