"""Natural values of every kind, composed of the pools; and kinds whose surface differs from what the call holds."""

import random
from typing import Callable

from espalier_tools.train.nano import pools, pseudo
from espalier_tools.train.nano.surface import SLOT


def _fill(form: str, rng: random.Random) -> str:
    """Fills {n}oun, {a}djective, {v}erb, names and numbers into a form; capitals in the slot ask for capitals."""
    return SLOT.sub(lambda match: _FILLERS[match.group(1)](rng), form)


_FILLERS: dict[str, Callable[[random.Random], str]] = {
    "n": lambda rng: rng.choice(pools.NOUNS),
    "N": lambda rng: pseudo.capital(rng.choice(pools.NOUNS)),
    "a": lambda rng: rng.choice(pools.ADJECTIVES),
    "A": lambda rng: pseudo.capital(rng.choice(pools.ADJECTIVES)),
    "v": lambda rng: rng.choice(pools.TASK_VERBS),
    "V": lambda rng: pseudo.capital(rng.choice(pools.TASK_VERBS)),
    "First": lambda rng: rng.choice(pools.FIRST_NAMES),
    "Last": lambda rng: rng.choice(pools.SURNAMES),
    "city": lambda rng: rng.choice(pools.CITIES),
    "City": lambda rng: rng.choice(pools.CITIES),
    "person": lambda rng: _person(rng),
    "number": lambda rng: str(rng.randrange(100, 10000)),
    "small": lambda rng: str(rng.randrange(1, 30)),
}


def _some(rng: random.Random, pool: tuple[str, ...], share: float, forms: tuple[str, ...]) -> str:
    """A word of the pool with probability `share`, otherwise a filled form."""
    return rng.choice(pool) if rng.random() < share else _fill(rng.choice(forms), rng)


def _person(rng: random.Random) -> str:
    roll = rng.random()
    first, last = rng.choice(pools.FIRST_NAMES), rng.choice(pools.SURNAMES)
    if roll < 0.08:
        return rng.choice(pools.RELATIONS)
    if roll < 0.45:
        return first
    if roll < 0.5:
        return rng.choice(("Dr. ", "Mr. ", "Ms. ", "Prof. ")) + last
    return f"{first} {last}-{rng.choice(pools.SURNAMES)}" if roll < 0.53 else f"{first} {last}"


def _city(rng: random.Random) -> str:
    city = rng.choice(pools.CITIES)
    return f"{city}, {rng.choice(pools.COUNTRIES)}" if rng.random() < 0.04 else city


def _place(rng: random.Random) -> str:
    roll = rng.random()
    if roll < 0.25:
        return rng.choice(pools.PLACES)
    name = rng.choice((pools.SURNAMES, pools.NOUNS, pools.FIRST_NAMES))
    word, number = pseudo.capital(rng.choice(name)), rng.randrange(1, 200)
    street = f"{word} {rng.choice(pools.STREET_KINDS)}"
    if roll < 0.6:
        return rng.choice((f"{street} {number}", f"{number} {street}", street))
    if roll < 0.8:
        return f"{rng.choice(pools.CITIES)} {rng.choice(pools.PLACE_KINDS)}"
    return rng.choice((f"{word}'s Bakery", f"the {word} {rng.choice(pools.PLACE_KINDS)}", rng.choice(pools.CITIES)))


def _task(rng: random.Random) -> str:
    if rng.random() < 0.15:
        return rng.choice(pools.TASKS)
    forms = (
        "{v} the {n}",
        "{v} {n}s",
        "{v} the {a} {n}",
        "{v} {First}'s {n}",
        "{v} my {n}",
        "{v} a {n} for {First}",
        "{v} the {n} and the {n}",
        "call {person}",
        "buy {n}s for the {n}",
        "ask {person} about the {n}",
        "{v} {city} {n}",
    )
    return _fill(rng.choice(forms), rng)


def message_about(thing: str, rng: random.Random) -> str:
    """A short sentence around a name or word."""
    forms = (
        "I'm at {x}",
        "have you seen {x}",
        "{x} called back",
        "let's meet at {x}",
        "Bring {x} tonight",
        "I found {x}",
        "{x} says hello",
        "what about {x}?",
        "We are going to {x} tomorrow",
        "don't forget {x}",
        "Do you know {x}?",
        "ask {x} for the keys",
        "I sent {x} the {n}",
        "the {n} is with {x}",
        "{x} is here",
        "no {n} without {x}",
    )
    form = rng.choice(forms).replace("{x}", "\0")
    return _fill(form, rng).replace("\0", thing)


def _message(rng: random.Random) -> str:
    roll = rng.random()
    if roll < 0.5:
        text = rng.choice(pools.MESSAGE_STARTS)
        text += " " + rng.choice(pools.MESSAGE_TAILS) if rng.random() < 0.7 else ""
    elif roll < 0.75:
        forms = (
            "the {n} is {a}",
            "can you {v} the {n}?",
            "I forgot my {n}",
            "did you {v} the {n}?",
            "please {v} the {n}",
            "we need {n}s for the {n}",
            "The {a} {n} is ready",
            "I will {v} your {n}",
            "your {n} looks {a}",
            "{First} wants the {n}",
            "where is the {a} {n}?",
            "the {n} in {city} was {a}",
            "I have {small} {n}s left",
        )
        text = _fill(rng.choice(forms), rng)
    else:
        text = message_about(_fill(rng.choice(("{First}", "{city}", "the {n}", "{person}")), rng), rng)
    return pseudo.capital(text) if rng.random() < 0.4 else text


def _stem(rng: random.Random) -> str:
    noun, other = rng.choice(pools.NOUNS), rng.choice(pools.NOUNS + pools.ADJECTIVES)
    year = rng.randrange(2015, 2031)
    return rng.choice(
        (
            noun,
            f"{other}_{noun}",
            f"{noun}-{year}",
            f"{noun}_v{rng.randrange(1, 9)}",
            f"{noun}{rng.randrange(1, 99)}",
            pseudo.capital(other) + pseudo.capital(noun),
            f"IMG_{rng.randrange(1000, 9999)}",
            f"{other} {noun}",
            f"{noun}_{rng.choice(pools.FIRST_NAMES).lower()}",
            f"{year}-{rng.randrange(1, 13):02}-{noun}",
        )
    )


def _extension(rng: random.Random) -> str:
    """Two of five are no extension that anybody knows."""
    if rng.random() < 0.6:
        return rng.choice(pools.EXTENSIONS)
    letters = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.choice((2, 3, 3, 3, 4))))
    return letters[:-1] + str(rng.randrange(10)) if rng.random() < 0.15 else letters


def _file(rng: random.Random) -> str:
    return f"{_stem(rng)}.{_extension(rng)}"


def _folder(rng: random.Random) -> str:
    forms = (
        "{N}s",
        "{N} Files",
        "{n}s",
        "{N} {number}",
        "{A} {N}s",
        "{First}'s {N}s",
        "{City} Trip",
        "{n}-{n}",
        "old {n}s",
        "{N}",
    )
    if rng.random() < 0.3:
        folder = rng.choice(pools.FOLDERS)
        return f"{folder} {rng.randrange(2015, 2031)}" if rng.random() < 0.4 else folder
    return _fill(rng.choice(forms), rng)


def _app(rng: random.Random) -> str:
    forms = ("{N}{N}", "{A}{N}", "{N} Pro", "{N}ly", "My{N}", "{N} {N}", "{N}", "{First} {small}", "{N}Hub")
    return _some(rng, pools.APPS, 0.5, forms)


def _domain(name: str, rng: random.Random) -> str:
    ending = rng.choice(
        ("com", "org", "net", "de", "io", "co.uk", "fr", "app", "dev", "edu", "es", "it", "info", "ch", "nl", "jp")
    )
    path = "/" + rng.choice(pools.NOUNS) if rng.random() < 0.15 else ""
    return f"{rng.choice(('', '', '', 'www.'))}{name}.{ending}{path}"


def _url(rng: random.Random) -> str:
    word, other = rng.choice(pools.NOUNS), rng.choice(pools.NOUNS)
    return _domain(rng.choice((word, word + other, f"{word}-{other}", f"{word}{rng.randrange(1, 99)}")), rng)


def _event(rng: random.Random) -> str:
    forms = (
        "{n} meeting",
        "{N} review",
        "{First}'s birthday",
        "{n} appointment",
        "lunch with {First}",
        "{n} with {person}",
        "{City} trip",
        "{a} {n}",
        "{First}'s {n}",
        "{N} workshop",
        "call with {First}",
        "{n} deadline",
        "{n} and {n}",
    )
    return _some(rng, pools.EVENTS, 0.3, forms)


def _list(rng: random.Random) -> str:
    return _some(rng, pools.LISTS, 0.6, ("{n}", "{n}s", "{a} {n}", "{First}'s {n}", "{city} trip"))


def _item(rng: random.Random) -> str:
    forms = ("{n}s", "{a} {n}s", "{n} {n}", "{small} {n}s", "{n}", "{a} {n}", "{First}'s {n}")
    return _some(rng, pools.FOODS, 0.4, forms)


def _label(rng: random.Random) -> str:
    return _some(
        rng, pools.LABELS, 0.35, ("{n}", "{a} {n}", "{n} {n}", "{n} time", "{n} break", "{n} practice", "{v} {n}")
    )


def _room(rng: random.Random) -> str:
    return _some(rng, pools.ROOMS, 0.75, ("{First}'s room", "{n} room", "{a} room", "{n} corner", "{a} {n}"))


def _category(rng: random.Random) -> str:
    return _some(
        rng, pools.PLACE_CATEGORIES, 0.7, ("{n} shop", "{n} store", "{n} repair", "{a} {n} shop", "{n} bar", "{n} club")
    )


def _phone(rng: random.Random) -> str:
    def digits(count: int) -> str:
        return "".join(rng.choices("0123456789", k=count))

    return rng.choice(
        (
            f"555-{digits(4)}",
            f"{digits(3)}-{digits(3)}-{digits(4)}",
            f"+{rng.randrange(1, 99)} {digits(3)} {digits(6)}",
            f"0{digits(3)} {digits(6)}",
            f"({digits(3)}) {digits(3)}-{digits(4)}",
            digits(rng.randrange(7, 11)),
        )
    )


def _number(rng: random.Random) -> str:
    whole = rng.randrange(1, 10 ** rng.choice((1, 2, 2, 3, 4)))
    return f"{whole}.{rng.randrange(1, 100)}" if rng.random() < 0.12 else str(whole)


def _expression(rng: random.Random) -> str:
    operators = ("+", "-", "*", "/")
    first, second, third = _number(rng), _number(rng), _number(rng)
    one, two = rng.choice(operators), rng.choice(operators)
    return rng.choice(
        (
            f"{first} {one} {second}",
            f"{first} {one} {second}",
            f"{first}{one}{second}",
            f"{first} {one} {second} {two} {third}",
            f"({first} {one} {second}) {two} {third}",
            f"{first} {one} ({second} {two} {third})",
            f"sqrt({first})",
            f"{rng.randrange(2, 20)}^{rng.randrange(2, 9)}",
        )
    )


def _date(rng: random.Random) -> str:
    day, month = rng.choice(pools.WEEKDAYS), rng.choice(pools.MONTHS)
    return rng.choice(
        (
            "today",
            "tomorrow",
            day,
            day,
            f"next {day}",
            f"{month} {rng.randrange(1, 29)}",
            f"{month} {rng.randrange(1, 29)}",
            rng.choice(("this weekend", "next week", "tonight", "the day after tomorrow", f"this {day}", "next month")),
        )
    )


def _phrase(rng: random.Random) -> str:
    forms = (
        "where is the {n}",
        "I need a {n}",
        "the {n} is {a}",
        "how much is the {n}",
        "my {n} is {a}",
        "{v} the {n} please",
        "I am looking for {First}",
        "{a} {n}",
        "we live in {city}",
        "do you have a {a} {n}?",
        "I like your {n}",
        "{n}",
    )
    return _some(rng, pools.PHRASES, 0.4, forms).removesuffix(" please")


def _word(rng: random.Random) -> str:
    return rng.choice(rng.choice((pools.DEFINED_WORDS, pools.NOUNS, pools.ADJECTIVES)))


def _time(rng: random.Random) -> tuple[str, str]:
    hour, minute = rng.randrange(24), rng.choice((0, 0, 0, 15, 30, 30, 45, *[rng.randrange(60) for _ in range(4)]))
    canonical = f"{hour:02}:{minute:02}"
    if rng.random() < 0.3:
        return rng.choice((canonical, canonical, f"{hour}:{minute:02}")), canonical
    clock = str((hour + 11) % 12 + 1) + (f":{minute:02}" if minute or rng.random() < 0.2 else "")
    half = "am" if hour < 12 else "pm"
    return clock + rng.choice((" ", " ", "")) + (half.upper() if rng.random() < 0.2 else half), canonical


def _currency(rng: random.Random) -> tuple[str, str]:
    spelled = rng.choice(tuple(pools.CURRENCIES))
    code = pools.CURRENCIES[spelled]
    return (code if rng.random() < 0.3 else spelled), code


def _integer(low: int, high: int, round_to: int) -> Callable[[random.Random], tuple[str, int]]:
    """Integers of [low, high]; half are multiples of `round_to`, as people say."""

    def draw(rng: random.Random) -> tuple[str, int]:
        number = rng.randint(low, high)
        number = max(low, number // round_to * round_to) if rng.random() < 0.5 else number
        return str(number), number

    return draw


def _amount(rng: random.Random) -> tuple[str, int]:
    number = rng.randrange(1, 10 ** rng.choice((2, 3, 3, 4, 5)))
    number = max(10, number // 10 * 10) if rng.random() < 0.4 else number
    return str(number), number


CONVERTED: dict[str, Callable[[random.Random], tuple[str, str | int]]] = {
    "minutes": _integer(1, 180, 5),
    "percent": _integer(0, 100, 5),
    "degrees": _integer(5, 35, 1),
    "amount": _amount,
    "time": _time,
    "currency": _currency,
}

NATURAL: dict[str, Callable[[random.Random], str]] = {
    "person": _person,
    "city": _city,
    "place": _place,
    "task": _task,
    "message": _message,
    "file": _file,
    "folder": _folder,
    "app": _app,
    "url": _url,
    "event": _event,
    "list": _list,
    "item": _item,
    "label": _label,
    "room": _room,
    "place_category": _category,
    "phone": _phone,
    "expression": _expression,
    "date": _date,
    "phrase": _phrase,
    "word": _word,
    "language": lambda rng: rng.choice(pools.LANGUAGES),
    "song": lambda rng: _some(rng, pools.SONGS, 0.3, pools.SONG_FORMS),
    "artist": lambda rng: _some(rng, pools.ARTISTS, 0.3, pools.ARTIST_FORMS),
    "show": lambda rng: _some(rng, pools.SHOWS, 0.2, pools.SHOW_FORMS),
    "topic": lambda rng: _fill(rng.choice(pools.TOPIC_FORMS), rng),
    "subject": lambda rng: _fill(rng.choice(pools.SUBJECT_FORMS), rng),
}


def dressed(kind: str, text: str, rng: random.Random) -> str:
    """Gives a pseudo or random-word text what its kind always has: an extension, a domain, a house number."""
    if kind == "file":
        joined = text.replace(" ", rng.choice(("_", "-", " ", "")))
        return f"{joined}.{_extension(rng)}"
    if kind == "app" and rng.random() < 0.4:
        return text.replace(" ", "")
    if kind == "url":
        return _domain(text.replace(" ", rng.choice(("-", ""))).replace("'", ""), rng)
    if kind == "place" and rng.random() < 0.5:
        return rng.choice(
            (
                f"{text} {rng.randrange(1, 200)}",
                f"{text} {rng.choice(pools.STREET_KINDS)}",
                f"{text} {rng.choice(pools.PLACE_KINDS)}",
            )
        )
    if kind == "folder" and rng.random() < 0.2:
        return f"{text} {rng.randrange(2015, 2031)}"
    if kind == "task" and rng.random() < 0.6:
        return f"{rng.choice(pools.TASK_VERBS)} {text}"
    if kind == "list" and rng.random() < 0.2:
        return f"{text}s"
    return text
