"""nano as it is measured and shipped: what counts as right, answers without an end, and a folder that comes back."""

import json

import pytest
import torch
from espalier_tools.train.nano import evaluate, ship
from espalier_tools.train.nano.evaluation import NO_CALL, REFUSAL
from espalier_tools.train.nano.model import initialise
from espalier_tools.train.nano.text import VOCAB, train_tokenizer
from espalier_tools.train.network import Network, Shape

CALL = '<|tool_call_start|>[open_app(app="Zoom")]<|tool_call_end|>'


@pytest.mark.parametrize(
    "expected, answer, right",
    [
        (CALL, CALL, True),
        (CALL, CALL.replace("Zoom", "zoom"), False),
        (CALL, CALL + " Done.", False),
        (REFUSAL, "I can't open apps with these tools.", True),
        (REFUSAL, "Sure, which one?", False),  # neither a call nor a refusal
        (REFUSAL, "", False),
        (REFUSAL, "I can't. " + CALL, False),
        (NO_CALL, "Hello!", True),
        (NO_CALL, "I can't do that here.", False),
        (NO_CALL, CALL, False),
        (NO_CALL, "ha ha ha" + evaluate.UNENDED, False),
        (NO_CALL, evaluate.UNENDED, False),
    ],
)
def test_an_answer_is_right_if_it_is_what_the_case_asks_for(expected, answer, right):
    assert evaluate.is_right(expected, answer) == right


@pytest.fixture(scope="module")
def nano():
    tokenizer = train_tokenizer(["<|im_start|>user\nHello<|im_end|>\n", "Open Zoom, please", "What is the time?"])
    network = Network(Shape("lfm2", VOCAB, 64, 128, 4, 2, 16, ("conv", "full_attention"), 1e4))
    initialise(network, 1)
    return network.requires_grad_(False).eval(), tokenizer


def test_answers_without_an_end_say_so(nano):
    network, tokenizer = nano
    cases = [{"tools": [], "messages": [{"role": "user", "content": text}]} for text in ("Hello", "Hello " * 700)]
    answers = evaluate.answers(network, tokenizer, cases)
    assert answers[0].endswith(evaluate.UNENDED) and answers[0] != evaluate.UNENDED  # weights at random never end
    assert answers[1] == evaluate.UNENDED  # the prompt alone is too long


def test_a_shipped_folder_comes_back_within_half_a_step_of_8_bits(nano, tmp_path):
    network, tokenizer = nano
    ship.save(network, tokenizer, tmp_path)
    loaded, again = ship.load(tmp_path)
    assert loaded.shape == network.shape and again.get_vocab() == tokenizer.get_vocab()
    state = loaded.state_dict()
    assert state.keys() == network.state_dict().keys()
    for name, value in network.state_dict().items():
        assert torch.allclose(state[name], value, atol=0.02 * float(value.abs().max())), name


def test_a_folder_of_another_model_is_refused(nano, tmp_path):
    ship.save(*nano, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "llama"}))
    with pytest.raises(ValueError, match="model_type is 'llama', expected 'lfm2'"):
        ship.load(tmp_path)
