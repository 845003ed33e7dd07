"""The data generator of nano: the same data for the same seed, calls that hold what was said, and splits that are apart."""

import json
import pathlib
import random
import re

import pytest
from espalier_tools.train.nano import calls, compose, evaluation, surface, values
from espalier_tools.train.nano.content import read_content
from espalier_tools.train.nano.fill import Unfillable, fill
from espalier_tools.train.nano.foreign import read_foreign
from espalier_tools.train.nano.generator import Generator
from espalier_tools.train.nano.plans import PLANS, Plan
from espalier_tools.train.nano.schema import document
from espalier_tools.train.nano.splits import SPLITS, split_of
from espalier_tools.train.nano.values import Value, Values

DATA = pathlib.Path(values.__file__).parent / "data"
WORDS = (
    "lantern brisk copper meadow whistle orbit saffron thimble gravel mosaic pebble quarry tundra velvet walnut".split()
)


@pytest.fixture(scope="module")
def generator() -> Generator:
    return Generator(DATA, WORDS)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> pathlib.Path:
    """A folder like the leaderboard's, with forty usable records and one whose argument is not in the question."""
    folder = tmp_path_factory.mktemp("leaderboard")
    (folder / "possible_answer").mkdir()
    records, answers = [], []
    for number in range(41):
        town = "Ghent" if number < 40 else "Namur"
        schema = {
            "type": "dict",
            "properties": {"town": {"type": "string"}, "size": {"type": "integer"}},
            "required": ["town"],
        }
        tool = {"name": f"zeppelin.hire{number}", "description": "Hires a zeppelin.", "parameters": schema}
        said = [[{"role": "user", "content": f"Hire zeppelin {100 + number} to Ghent"}]]
        records.append({"id": number, "question": said, "function": [tool]})
        truth = {f"zeppelin.hire{number}": {"town": [town], "size": [100 + number, ""]}}
        answers.append({"id": number, "ground_truth": [truth]})
    name = "BFCL_v4_simple_python.json"
    (folder / name).write_text("\n".join(map(json.dumps, records)))
    (folder / "possible_answer" / name).write_text("\n".join(map(json.dumps, answers)))
    return folder


@pytest.fixture(scope="module")
def measured(corpus) -> evaluation.Evaluation:
    return evaluation.Evaluation(DATA, WORDS, corpus)


def names_of(conversation: dict) -> set[str]:
    return {(tool.get("function") or tool)["name"] for tool in conversation["tools"]}


@pytest.mark.parametrize("stage", PLANS)
def test_an_index_and_a_seed_give_the_same_conversation_and_others_give_another(generator, stage):
    again = Generator(DATA, WORDS)
    for index in range(20):
        assert generator.conversation(index, 3, stage) == again.conversation(index, 3, stage)
    drawn = {json.dumps(generator.conversation(index, seed, stage)) for index in range(20) for seed in (3, 4)}
    assert len(drawn) > 30


@pytest.mark.parametrize("stage", PLANS)
def test_no_slot_is_left(generator, stage):
    for index in range(100):
        for message in generator.conversation(index, 0, stage)["messages"]:
            assert not surface.SLOT.search(message["content"]), message


@pytest.mark.parametrize("stage", ["1", "2", "refusal"])
def test_calls_name_tools_of_the_list_and_hold_required_arguments_in_schema_order(generator, stage):
    for index in range(100):
        conversation = generator.conversation(index, 0, stage)
        tools = [tool.get("function") or tool for tool in conversation["tools"]]
        schemas = {tool["name"]: tool["parameters"] for tool in tools}
        for message in conversation["messages"]:
            for name, arguments in calls.parse(message["content"]) or ():
                order = list(schemas[name]["properties"])
                assert [key for key in order if key in arguments] == list(arguments)
                assert set(schemas[name]["required"]) <= set(arguments)


def test_string_arguments_stand_in_the_request(generator):
    converted = set(compose.CONVERTED)
    for function in generator.requests.asked:
        kinds = function.kinds()
        for seed in range(3):
            request = generator.requests.request(function, random.Random(seed))
            ((name, arguments),) = calls.parse(calls.message([request.call]))
            assert (name, arguments) == (function.name, request.arguments)
            for key, value in arguments.items():
                if key in kinds and kinds[key] not in converted:
                    assert value in request.text


@pytest.mark.parametrize("kind", sorted({*compose.CONVERTED, *compose.NATURAL}))
def test_values_belong_to_their_split_and_can_be_copied(kind):
    drawer = Values(WORDS)
    for split in SPLITS:
        rng = random.Random(kind)
        for _ in range(15):
            value = drawer.draw(kind, split, rng)
            assert values.allowed(kind, value.canonical, split)
            assert values.FORBIDDEN.isdisjoint(value.surface)
            assert value.surface == value.surface.strip()


@pytest.mark.parametrize("kind", sorted(set(values.STYLES)))
def test_no_test_value_is_drawn_for_training(kind):
    drawer, rng = Values(WORDS), random.Random(1)
    train = {drawer.draw(kind, "train", rng).canonical.casefold() for _ in range(60)}
    test = {drawer.draw(kind, "test", rng).canonical.casefold() for _ in range(60)}
    assert train.isdisjoint(test)


@pytest.mark.parametrize(
    "surface_form, canonical",
    [("12 am", "00:00"), ("12 pm", "12:00"), ("6 pm", "18:00"), ("11:15 am", "11:15"), ("9:30", "09:30")],
)
def test_times_of_day_become_24_hour_times(surface_form, canonical):
    rng = random.Random(0)
    drawn = dict(compose.CONVERTED["time"](rng) for _ in range(20000))
    assert drawn[surface_form] == canonical


def test_wordings_of_the_splits_are_apart_and_are_all():
    content = read_content(DATA)
    parts = [content.of_split(split) for split in SPLITS]
    for at, function in enumerate(content.functions):
        texts = [wording.text for part in parts for wording in part.functions[at].wordings]
        assert sorted(texts) == sorted(wording.text for wording in function.wordings)
    assert sorted(text for part in parts for text in part.outside) == sorted(content.outside)
    assert 0.7 < len(parts[0].outside) / len(content.outside) < 0.9


def test_a_split_does_not_depend_on_capitals():
    assert split_of("city", "Paris") == split_of("city", "PARIS")


def test_the_same_request_is_called_with_its_tool_and_refused_without(generator):
    for pair in range(40):
        with_tool, without = (generator.conversation(2 * pair + at, 0, "refusal") for at in (0, 1))
        assert with_tool["messages"][0] == without["messages"][0]
        ((name, _),) = calls.parse(with_tool["messages"][1]["content"])
        assert name in names_of(with_tool) and name not in names_of(without)
        assert without["messages"][1]["content"].startswith("I can't")


def test_a_sixth_of_what_is_asked_of_tools_is_refused(generator):
    for stage in ("1", "2"):
        kinds = [kind for index in range(800) for kind in generator.conversation(index, 0, stage)["kinds"]]
        asked = [kind for kind in kinds if kind in ("call", "result", "missing", "refusal")]
        assert 0.12 < asked.count("refusal") / len(asked) < 0.22


def test_two_calls_in_a_request_are_one_list(generator):
    plan = Plan(tools=(4, 4), turns=(1, 1), weights={"call": 1}, double=1.0)
    said = [generator.conversation(index, 0, plan)["messages"] for index in range(60)]
    doubles = [messages for messages in said if len(calls.parse(messages[1]["content"])) == 2]
    assert len(doubles) > 20
    assert all(" and " in messages[0]["content"] for messages in doubles)


def test_a_value_never_holds_the_words_that_end_it():
    def draw(kind, rng):
        return Value(*[rng.choice(["trip to Rome", "bread"])] * 2)

    for seed in range(20):
        assert fill(
            "Add {item} to {item2}",
            {},
            lambda kind, rng: rng.choice([draw(kind, rng), Value("x", "x")]),
            random.Random(seed),
        )
        with pytest.raises(Unfillable):
            fill("Add {item} to it", {}, lambda kind, rng: Value("a trip to it", "a trip to it"), random.Random(seed))


def test_variations_leave_slots_alone():
    for seed in range(200):
        text = surface.vary("Add {item} to {list}, I am late", {"item": "item", "list": "list"}, random.Random(seed))
        assert re.findall(r"\{\w+\}", text) == ["{item}", "{list}"]


@pytest.mark.parametrize("kind", evaluation.SPLITS)
def test_cases_are_repeatable_and_end_with_the_user(measured, kind):
    cases = measured.cases(kind, 6, seed=5)
    assert cases == measured.cases(kind, 6, seed=5)
    for case in cases:
        assert case["messages"][-1]["role"] == "user" and len(case["tools"]) == 4
        called = calls.parse(case["expected"])
        if kind == "refusal":
            assert case["expected"] == evaluation.REFUSAL
        elif kind not in ("small_talk", "knowledge", "extraction"):
            assert {name for name, _ in called} <= names_of(case)


def test_cases_without_a_new_value_do_not_count_as_new_values(measured):
    for kind in ("values", "foreign"):
        cases = measured.cases(kind, 80, seed=2)
        told = [case for case in cases if case["counts"]]
        assert 40 < len(told) < 80
        assert not any("()" in case["expected"] for case in told)  # a call without arguments
    names = {name for names in measured._names.values() for name in names}
    assert all(any(f'"{name}"' in case["expected"] for name in names) for case in told)
    assert all(case["counts"] for case in measured.cases("wordings", 40))


def test_tools_of_the_other_corpus_are_read_where_their_arguments_are_in_the_question(corpus):
    functions = [function for split in SPLITS for function in read_foreign(corpus, split)]
    assert sorted(function.name for function in functions) == sorted(f"zeppelin_hire{number}" for number in range(40))
    original, template = functions[0].wordings
    assert original.fixed["town"] == "Ghent" and original.text.endswith("to Ghent")
    assert template.text == "Hire zeppelin {size} to {town}" and not template.fixed


def test_a_list_without_the_tool_holds_none_that_may_serve_as_well(corpus):
    requests = Generator(DATA, WORDS, foreign=corpus).requests
    plan = Plan(tools=(4, 4), turns=(1, 1), weights={}, foreign=0.5)
    for seed in range(40):
        rng = random.Random(seed)
        request = requests.request(rng.choice(requests.foreign), rng)
        listed = requests.tool_list(plan, rng, request, present=False)
        assert not any(tool.name.lower().startswith("zeppelin") for tool in listed)


def test_the_schema_document_is_of_the_content_as_it_is():
    path = DATA.parents[4] / "docs" / "nano-schema.md"
    assert path.read_text("utf-8") == document(), "python -m espalier_tools.train.nano.schema > docs/nano-schema.md"
