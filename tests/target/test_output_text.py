from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider_target.output_text import OutputText


class Letters:
    """Decoder whose ids are code points."""

    def push(self, token_ids: Sequence[int]) -> str:
        return "".join(map(chr, token_ids))

    def flush(self) -> str:
        return ""


def cut_at_first_stop(text: str, stops: Sequence[str], include: bool) -> str:
    """The specification: stop at the first character that completes any stop string."""
    for end in range(1, len(text) + 1):
        done = [stop for stop in stops if text[:end].endswith(stop)]
        if done:
            start = min(end - len(stop) for stop in done)
            stop = min((stop for stop in done if end - len(stop) == start), key=len)
            return text[: start + len(stop)] if include else text[:start]
    return text


@given(st.text("ab", max_size=14), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3), st.booleans())
def test_text_pushed_one_by_one_ends_where_the_first_stop_string_completes(
    text: str, stops: list[str], include: bool
) -> None:
    output = OutputText(Letters(), stops, include)
    shown = ""
    for character in text:
        met = output.push((ord(character),))
        shown += output.take()
        assert cut_at_first_stop(text, stops, include).startswith(shown), "nothing shown is ever taken back"
        if met:
            break
    output.finish()
    assert shown + output.take() == cut_at_first_stop(text, stops, include)


def test_a_possible_beginning_of_a_stop_string_is_held_back_until_it_is_decided() -> None:
    output = OutputText(Letters(), ["xyz"], include_stop=False)
    output.push((ord("a"), ord("x"), ord("y")))
    assert output.take() == "a"
    output.push((ord("b"),))
    assert output.take() == "xyb"


@pytest.mark.parametrize(("include", "text"), [(False, "a"), (True, "axyz")])
def test_the_stop_string_itself_is_shown_only_when_asked_for(include: bool, text: str) -> None:
    output = OutputText(Letters(), ["xyz"], include)
    assert output.push(tuple(map(ord, "axyz")))
    output.finish()
    assert output.take() == text
    assert output.stop_string == "xyz"


def test_what_is_held_back_is_shown_at_the_end() -> None:
    output = OutputText(Letters(), ["xyz"], include_stop=False)
    output.push(tuple(map(ord, "axy")))
    output.finish()
    assert output.take() == "axy"
