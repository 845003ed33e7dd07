"""What conversations of each stage of training are made of."""

from dataclasses import dataclass, field
from typing import Mapping


@dataclass(frozen=True)
class Plan:
    """Weights of the kinds of turns and sizes. A kind that cannot be had (no tools, no content) is not drawn.

    Kinds of turns: call, result (a call, the tool's answer and a sentence), missing (an argument is asked for), refusal,
    small_talk, knowledge, extraction.
    """

    tools: tuple[int, int]  # fewest and most functions in the list
    turns: tuple[int, int]
    weights: Mapping[str, float]
    twins: float = 0.0  # share of conversations whose request others share, with its tool in the list or without
    foreign: float = 0.12  # share of tools from another corpus
    described: float = 0.3  # share of conversations whose parameters have descriptions
    wrapped: float = 0.1  # share of conversations whose tools are in {"type": "function", ...}
    double: float = 0.04  # share of requests that ask for two calls
    bare: float = 0.0  # share of conversations of talk only, without tools
    bare_weights: Mapping[str, float] = field(
        default_factory=lambda: {"small_talk": 4, "knowledge": 3, "extraction": 3}
    )


_MIXED = {"call": 48, "result": 10, "missing": 5, "refusal": 11, "small_talk": 11, "knowledge": 6, "extraction": 9}

PLANS = {
    "0": Plan(tools=(0, 0), turns=(1, 1), weights={"call": 1}, foreign=0),
    "1": Plan(tools=(1, 2), turns=(1, 3), weights=_MIXED, twins=0.2, bare=0.04),
    "2": Plan(tools=(2, 6), turns=(1, 5), weights=_MIXED, twins=0.15, bare=0.04),
    "copy": Plan(tools=(1, 2), turns=(3, 6), weights={"call": 1}, foreign=0.05),
    "refusal": Plan(tools=(1, 1), turns=(1, 1), weights={"call": 1}, twins=1.0, double=0),
    "chat": Plan(tools=(0, 0), turns=(1, 3), weights={}, bare=1.0),
}
"""Stage -> plan. Stage 0 teaches copying: requests and their calls without a list, hence only of our own functions, since
names must not be remembered. `copy` teaches it with names from a list, many calls for each. `refusal` is one tool that fits or
does not. `chat` is talk without tools."""

TWINS = 1 << 15
"""Number of shared requests, so that indices drawn at random find each of them with and without its tool."""

NEAR = (
    ("set_timer", "set_alarm", "create_reminder", "create_event", "cancel_timer"),
    ("create_event", "list_events", "delete_event", "create_reminder"),
    ("send_message", "send_email", "call_contact", "read_messages", "add_contact"),
    ("create_note", "search_notes", "add_to_list", "create_reminder"),
    ("play_music", "pause_music", "next_track", "play_podcast", "add_to_playlist", "set_volume"),
    ("set_wifi", "set_bluetooth", "set_dark_mode", "set_brightness", "set_light", "set_thermostat", "set_volume"),
    ("open_app", "quit_app", "open_website", "take_screenshot", "lock_screen"),
    ("find_file", "move_file", "rename_file", "delete_file", "create_folder"),
    ("web_search", "open_website", "define_word", "translate", "calculate", "convert_currency"),
    ("get_weather", "get_time", "find_place", "get_directions", "web_search"),
)
"""Functions that are taken for one another; a list with one of them is the hard case for a request for another."""
