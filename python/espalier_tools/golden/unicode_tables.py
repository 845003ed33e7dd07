"""Makes espalier/text/unicode_tables.cc: Unicode as the `tokenizers` library (0.23) sees it.

The library answers from five sources with different Unicode versions (Oniguruma, the Rust standard
library, and the crates regex, unicode_categories and unicode-normalization-alignments), and the C++
side links PCRE2 and utf8proc in whatever version the system has. So the sets are measured: every code
point is put through the library and its answer is written down as ranges.

Run as `python -m espalier_tools.golden.unicode_tables` from python/. Needs tokenizers and unicodedata2
(the newest Unicode, to know which code points came or changed after Unicode 14, the version of PCRE2 10.42
and of Python 3.11). Deterministic for given versions of these.
"""

import pathlib
import unicodedata as unicode_14

import unicodedata2 as unicode_new
from tokenizers import Regex, normalizers, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parents[3]
TARGET = ROOT / "espalier" / "text" / "unicode_tables.cc"

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = (
    "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn"
).split()


def chunks(size=5000):
    for begin in range(0, len(CODE_POINTS), size):
        yield CODE_POINTS[begin : begin + size]


def matched_by(pattern):
    """Code points that an Oniguruma pattern matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for part in chunks():
        kept = set()
        for _, (begin, end) in split.pre_tokenize_str("".join(map(chr, part))):
            kept.update(range(begin, end))
        found.update(c for i, c in enumerate(part) if i not in kept)
    return found


def split_off_by(pre_tokenizer):
    """Code points that the pre-tokenizer separates from letters around them."""
    found = set()
    for part in chunks():
        text = "".join(f"a{chr(c)}a" for c in part)
        begins = {begin for _, (begin, _) in pre_tokenizer.pre_tokenize_str(text)}
        found.update(c for i, c in enumerate(part) if 3 * i + 1 in begins)
    return found


def word_characters():
    r"""\w of the regex crate, seen through the Whitespace pre-tokenizer."""
    found = set()
    for part in chunks():
        text = " ".join(f"a{chr(c)}a" for c in part)
        words = {b for _, (b, e) in pre_tokenizers.Whitespace().pre_tokenize_str(text) if e - b == 3}
        found.update(c for i, c in enumerate(part) if 4 * i in words)
    return found


def changed_by(normalizer):
    return {c: s for c in CODE_POINTS if (s := normalizer.normalize_str(chr(c))) != chr(c)}


def ranges(code_points):
    result = []
    for c in sorted(code_points):
        if result and c == result[-1][1] + 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def utf8_size(c):
    return len(chr(c).encode())


def regex_aliases():
    """Ranges of code points whose category differs between Oniguruma, Unicode 14 and the newest Unicode,
    each with an old character of Oniguruma's category and of the same UTF-8 length."""
    category = {c: name for name in CATEGORIES for c in matched_by(r"\p{%s}" % name)}
    han = matched_by(r"\p{Han}")

    def stable(c):
        return category[c] == unicode_14.category(chr(c)) == unicode_new.category(chr(c))

    alias_of = {}
    for c in CODE_POINTS:
        key = (category[c], c in han, utf8_size(c))
        if c > 0x7F and stable(c) and key not in alias_of:
            alias_of[key] = c
    rows = []
    for c in CODE_POINTS:
        if stable(c):
            continue
        alias = alias_of[(category[c], c in han, utf8_size(c))]
        if rows and rows[-1][1] == c - 1 and rows[-1][2] == alias:
            rows[-1][1] = c
        else:
            rows.append([c, c, alias])
    return rows


def lowercase_rows():
    """Runs of code points with one distance to their lower case: first, last, step, distance."""
    lower = changed_by(normalizers.Lowercase())
    rows = []
    for c, s in sorted(lower.items()):
        if len(s) != 1:
            assert (c, s) == (0x130, "i\u0307"), (c, s)  # the one special case, written in unicode.cc
            continue
        delta = ord(s) - c
        if rows and rows[-1][3] == delta and c - rows[-1][1] in (1, 2):
            gap = c - rows[-1][1]
            if rows[-1][0] == rows[-1][1] or rows[-1][2] == gap:
                rows[-1][1], rows[-1][2] = c, gap
                continue
        rows.append([c, c, 1, delta])
    return rows


def inert_in_normalization():
    """Code points that newer Unicode decomposes, composes or reorders and the library's tables do not."""
    nfc, nfd, nfkd = normalizers.NFC(), normalizers.NFD(), normalizers.NFKD()
    inert = set()
    for c in CODE_POINTS:
        s = chr(c)
        if nfkd.normalize_str(s) != unicode_new.normalize("NFKD", s):
            assert nfkd.normalize_str(s) == s
            inert.add(c)
        if unicode_new.combining(s) != 0:
            low, high = "\u0334", "\u0345"  # combining classes 1 and 240
            texts = ["a" + s + low, "a" + high + s]
            if any(nfd.normalize_str(t) != unicode_new.normalize("NFD", t) for t in texts):
                inert.add(c)
        parts = unicode_new.decomposition(s)
        if parts and not parts.startswith("<"):
            pair = [int(p, 16) for p in parts.split()]
            if len(pair) == 2:
                text = "".join(map(chr, pair))
                if nfc.normalize_str(text) != unicode_new.normalize("NFC", text):
                    inert.add(pair[0])
    return inert


def write_array(out, name, comment, kind, rows):
    out.append(f"// {comment}")
    out.append(f"constexpr {kind} {name}Rows[] = {{")
    line = "   "
    for row in rows:
        item = " {" + ", ".join(str(v) if v < 0 else hex(v) for v in row) + "},"
        if len(line) + len(item) > 100:
            out.append(line)
            line = "   "
        line += item
    out += [line, "};", f"constinit const std::span<const {kind}> {name}{{{name}Rows}};", ""]


def main():
    clean = normalizers.BertNormalizer(True, False, False, False)
    accents = normalizers.BertNormalizer(False, False, True, False)
    sets = [
        ("kNumeric", "char::is_numeric of Rust (Digits)", split_off_by(pre_tokenizers.Digits(True))),
        ("kWord", r"\w of the regex crate (Whitespace, single_word)", word_characters()),
        ("kPunctuation", "is_punctuation of unicode_categories, and ASCII punctuation",
         split_off_by(pre_tokenizers.Punctuation())),
        ("kOther", "what BertNormalizer's clean_text removes",
         {c for c, s in changed_by(clean).items() if s == ""}),
        ("kMarkNonspacing", "is_mark_nonspacing of unicode_categories (BertNormalizer)",
         {c for c in CODE_POINTS if accents.normalize_str(chr(c)) == ""}),
        ("kCombiningMark", "is_combining_mark of unicode-normalization-alignments (StripAccents)",
         set(changed_by(normalizers.StripAccents()))),
        ("kNormalizationInert", "newer than the library's normalisation tables: never changed or moved",
         inert_in_normalization()),
    ]
    out = [
        "// Generated by python -m espalier_tools.golden.unicode_tables; do not edit.",
        '#include "espalier/text/unicode_tables.h"',
        "",
        "namespace espalier::text::unicode_tables {",
        "",
        "// clang-format off",
    ]
    for name, comment, members in sets:
        rows = ranges(members)
        write_array(out, name, comment, "Range", rows)
    for name, comment, kind, rows in [
        ("kRegexAlias", "stand-ins for code points whose category depends on the Unicode version", "Alias",
         regex_aliases()),
        ("kLowercase", "to_lowercase of Rust, U+0130 left out", "Lowercase", lowercase_rows()),
    ]:
        write_array(out, name, comment, kind, rows)
    out += ["// clang-format on", "", "}  // namespace espalier::text::unicode_tables", ""]
    TARGET.write_text("\n".join(out))
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
