"""Pseudo-words of syllables in the manner of several languages: values that no pool holds, so that only copying helps."""

import random
import unicodedata

# Each style: onsets, vowels, codas, endings of a word; an empty string is "nothing here". Repeats weigh.
STYLES = tuple(
    tuple(tuple(part.replace("-", "") for part in parts.split()) for parts in style)
    for style in (
        (
            "b br c cl d dr f g gr h j k l m n p pr r s st t th tr v w wh -",
            "a e i o u ea oo ai",
            "- - n r l st ck m nd",
            "- y er ton ley field ing",
        ),
        ("b c d f g l m n p r s t v z ch gi qu", "a e i o u io ia", "- - - n r l", "- o a ini etti ella ano"),
        ("b c d f g j l m n ñ p r s t v ll", "a e i o u ue ie á é í ó", "- - - n r s l", "- o a ez ado ero illa"),
        (
            "b d f g h k kr l m n p r s sch st t w z pf",
            "a e i o u ei au ö ü ä ie",
            "- n r l ch rg nd ß tz ck",
            "- en er berg heim lich ung",
        ),
        ("b bl d f g h k kj l m n r s sk sv t v", "a e i o u y å ø ö ä", "- n r l g nd rt k", "- sen son dal vik by"),
        (
            "b c cz d g j k kr ł m n p prz r s sz t w z ż",
            "a e i o u y ie ó ą ę",
            "- - n r k ś ć l",
            "- ski ek owa ice ów",
        ),
        ("k s t n h m y r w g z d b sh ch ts ky", "a i u e o ō ū", "- - - - n", "- ko mi ta ro da"),
        ("b d f g h j k l m n p s t w y ng mb nd kw", "a e i o u aa", "- - - -", "- wa ni la ka zi"),
        ("b bh d dh g h j k kh l m n p r s sh t th v y", "a aa i ee u o ai", "- - n r sh l m", "- an esh ika pur ani"),
        ("b c d f g h k l m n ph qu t th tr v x", "a e i o u â ê ơ ư ô", "- n ng nh t c m", "-"),
        ("b c ch d f g j l m n p ph r s t v", "a e é i o u ou eau oi è", "- - n r s l t", "- ette eau ier et ac"),
        ("b d f gh h j k kh l m n q r s sh t z", "a i u aa ay e", "- n r m d l b", "- i ah an een"),
        ("b ç d g h k l m n p s ş t v y z", "a e ı i o ö u ü", "- - n r l k z", "- lar cı lik oğlu"),
        ("b d g k l m n p r s st t v z kr zv pr", "a e i o u ya", "- - n r v k l", "- ov ova sky enko ich"),
    )
)


PLAIN = str.maketrans("łøßıđ", "losid")  # letters that do not decompose into a base letter and an accent


def plain(text: str) -> str:
    """The text without diacritics, as most people type it."""
    decomposed = unicodedata.normalize("NFD", text.translate(PLAIN))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def word(rng: random.Random) -> str:
    """One lower-case pseudo-word of one to four syllables; one in three keeps its diacritics."""
    onsets, vowels, codas, endings = rng.choice(STYLES)
    count = rng.choice((1, 1, 2, 2, 2, 2, 3, 3, 4))
    text = "".join(rng.choice(onsets) + rng.choice(vowels) + rng.choice(codas) for _ in range(count))
    text += rng.choice(endings) if count < 3 and rng.random() < 0.5 else ""
    text = text if rng.random() < 0.35 else plain(text)
    return text if len(text) > 1 else text + rng.choice(("na", "lo", "rt", "x"))


def number_part(rng: random.Random) -> str:
    """What real names carry beside letters: "7", "42b", "2024", "X9"."""
    digits = str(rng.randrange(10 ** rng.choice((1, 2, 2, 3, 4))))
    return rng.choice((digits, digits, digits + rng.choice("abcdk"), rng.choice("ABFKQRTVX") + digits))


def capital(text: str) -> str:
    """First letter upper; `str.capitalize` would lower the others."""
    return text[:1].upper() + text[1:]
