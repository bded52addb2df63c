"""Forms over a byte-level vocabulary: kept to the letter, refused with a reason, and never compiled for long."""

from __future__ import annotations

import asyncio
import json
from random import Random

import numpy as np
import pytest
from outrider_doubles.tiny_tokenizer import EOS_ID, TINY_VOCAB_SIZE, write_tiny_tokenizer

from outrider_runtime.errors import InvalidRequest
from outrider_runtime.text.tokenizer import Tokenizer
from outrider_target.structure.compiler import Compiler
from outrider_target.structure.vocabulary import spelling_of
from outrider_wire.sampling import SamplingParams

PADDED_VOCAB_SIZE = TINY_VOCAB_SIZE + 13


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tiny_tokenizer(folder)
    return Tokenizer.from_folder(folder)


@pytest.fixture(scope="module")
def compiler(tokenizer: Tokenizer) -> Compiler:
    return Compiler(spelling_of(tokenizer, PADDED_VOCAB_SIZE))


def random_text(compiler: Compiler, tokenizer: Tokenizer, sampling: SamplingParams, random: Random) -> str | None:
    """A text of random admitted ids; None where it did not end by itself."""
    constraint, ids = compiler.compile(sampling), []
    for _ in range(200):
        bits = np.unpackbits(constraint.masks(())[0].view(np.uint8), bitorder="little")
        admitted = np.flatnonzero(bits)
        assert len(admitted) and admitted.max() < TINY_VOCAB_SIZE
        token = EOS_ID if bits[EOS_ID] else int(random.choice(admitted))
        if token == EOS_ID:
            return tokenizer.decode(ids)
        assert constraint.take([token])
        ids.append(token)
    return None


def test_random_answers_of_a_schema_are_documents_of_it(compiler: Compiler, tokenizer: Tokenizer) -> None:
    schema = {
        "type": "object",
        "properties": {"é": {"enum": [1, "zwei", None]}, "ok": {"type": "boolean"}},
        "required": ["é", "ok"],
        "additionalProperties": False,
    }
    texts = [
        random_text(compiler, tokenizer, SamplingParams(json_schema=json.dumps(schema)), Random(seed))
        for seed in range(12)
    ]
    documents = [json.loads(text) for text in texts if text is not None]
    assert documents
    for document in documents:
        assert set(document) == {"é", "ok"} and document["é"] in (1, "zwei", None)
        assert isinstance(document["ok"], bool)


@pytest.mark.parametrize("choice", ['say "no"\n', "a\\b", "naïve ☃", "/x/i", "${y}"])
def test_choices_are_kept_to_the_letter(compiler: Compiler, tokenizer: Tokenizer, choice: str) -> None:
    assert random_text(compiler, tokenizer, SamplingParams(choices=(choice,)), Random(0)) == choice


def fits(compiler: Compiler, tokenizer: Tokenizer, sampling: SamplingParams, text: str) -> bool:
    return compiler.compile(sampling).take([*tokenizer.encode(text, add_special_tokens=False), EOS_ID])


CLASSES = [
    (r"\d{2}", ["07"], ["\u0660\u0667", "\U0001fbf0\U0001fbf7", "0x"]),
    (r"[\d.]+", ["1.5"], ["\u0661.\u0665", "1-5"]),
    (r"[^\d]", ["x", "\u0663"], ["3"]),
    (r"\D", ["x", "\u0663"], ["3"]),
    (r"\w+", ["a_Z9"], ["é", "a b"]),
    (r"\W", ["é", "-"], ["a", "_"]),
    (r"a\sb", ["a b", "a\tb", "a\nb"], ["a\u00a0b", "ab"]),
    (r"\S", ["a", "\u00a0"], [" ", "\t"]),
    (r"\\d", ["\\d"], ["7", "\\7"]),
    (r"[\w-]+@\w+\.(com|org)", ["a-b@c.org"], ["ä@c.org", "a@c.net"]),
]


@pytest.mark.parametrize(("expression", "good", "bad"), CLASSES, ids=[case[0] for case in CLASSES])
def test_classes_of_expressions_mean_ascii(
    compiler: Compiler, tokenizer: Tokenizer, expression: str, good: list[str], bad: list[str]
) -> None:
    regex = SamplingParams(regex=expression)
    schema = SamplingParams(json_schema=json.dumps({"type": "string", "pattern": f"^{expression}$"}))
    for text, is_good in (*((text, True) for text in good), *((text, False) for text in bad)):
        assert fits(compiler, tokenizer, regex, text) is is_good, text
        assert fits(compiler, tokenizer, schema, json.dumps(text, ensure_ascii=False)) is is_good, text


def test_only_patterns_of_a_schema_are_expressions(compiler: Compiler, tokenizer: Tokenizer) -> None:
    schema = {
        "type": "object",
        "properties": {"pattern": {"const": "\\d"}, "const": {"type": "string", "pattern": "^\\d$"}},
        "patternProperties": {"^x\\d$": {"type": "null"}},
        "required": ["pattern", "const", "x1"],
        "additionalProperties": False,
    }
    sampling = SamplingParams(json_schema=json.dumps(schema))
    assert fits(compiler, tokenizer, sampling, '{"pattern": "\\\\d", "const": "3", "x1": null}')
    assert not fits(compiler, tokenizer, sampling, '{"pattern": "\\\\d", "const": "\u0663", "x1": null}')
    assert not fits(compiler, tokenizer, sampling, '{"pattern": "3", "const": "3", "x1": null}')


@pytest.mark.parametrize("text", ["{", "[" * 3000 + "\\" + "]" * 3000], ids=["cut off", "deep"])
def test_a_schema_that_is_no_json_is_refused_by_the_library(compiler: Compiler, text: str) -> None:
    with pytest.raises(InvalidRequest, match="json_schema"):
        compiler.compile(SamplingParams(json_schema=text + "\\"))


def test_trying_proposals_changes_nothing_about_what_comes_next(compiler: Compiler, tokenizer: Tokenizer) -> None:
    constraint = compiler.compile(SamplingParams(regex="[a-z]{2}(the|[0-9]+)x"))
    ids = tokenizer.encode("abthex", add_special_tokens=False)
    before = constraint.masks(())
    assert constraint.legal([*ids, EOS_ID, 5]) == len(ids)
    assert constraint.legal([*ids[:2], ids[0], ids[1]]) == 2
    tried = constraint.masks(ids)
    assert np.array_equal(constraint.masks(()), before)
    for place, token in enumerate(ids):
        assert np.array_equal(constraint.masks(())[0], tried[place])
        assert constraint.take([token])
    assert np.array_equal(constraint.masks(())[0], tried[-1])
    assert constraint.legal([EOS_ID]) == 0, "an end is not worth a forward pass"


@pytest.mark.parametrize("vocab_size", [TINY_VOCAB_SIZE, TINY_VOCAB_SIZE + 1, TINY_VOCAB_SIZE + 31])
def test_masks_have_a_bit_for_every_id_and_no_more_words_than_that(tokenizer: Tokenizer, vocab_size: int) -> None:
    constraint = Compiler(spelling_of(tokenizer, vocab_size)).compile(SamplingParams(regex="a*"))
    assert constraint.masks((tokenizer.encode("a")[0],)).shape == (2, -(-vocab_size // 32))


def bomb() -> str:
    parts = [{"anyOf": [{"properties": {f"p{i}{j}": {"type": "string"}}} for j in range(4)]} for i in range(12)]
    return json.dumps({"type": "object", "allOf": parts})


@pytest.mark.parametrize(
    ("sampling", "says"),
    [
        (SamplingParams(json_schema='{"type":"object","propertyNames":{}}'), "propertyNames"),
        (SamplingParams(json_schema='{"$ref":"http://127.0.0.1/x.json"}'), "127.0.0.1"),
        (SamplingParams(json_schema='{"$ref":"file:///etc/passwd"}'), "file:"),
        (SamplingParams(json_schema="false"), "nsatisfiable"),
        (SamplingParams(json_schema=bomb()), "json_schema"),
        (SamplingParams(regex=r"(a)\1"), "backreferences"),
        (SamplingParams(regex="(?=a)b"), "look-around"),
        (SamplingParams(regex="(a"), "regex"),
    ],
)
async def test_a_form_that_cannot_be_kept_to_is_refused_by_field_and_reason(
    compiler: Compiler, sampling: SamplingParams, says: str
) -> None:
    with pytest.raises(InvalidRequest, match=says) as refusal:
        await compiler.constraint(sampling)
    assert refusal.value.field == ("regex" if sampling.regex else "json_schema")


@pytest.mark.parametrize("regex", ["((a{1,100}){1,100}){1,100}", "((((a*)*)*)*)*b", ".*a.{18}", "(ab|cd){1,99999}"])
def test_nested_quantifiers_end_as_a_mask_or_as_a_failure_of_their_own(compiler: Compiler, regex: str) -> None:
    constraint, random = compiler.compile(SamplingParams(regex=regex)), Random(1)
    for _ in range(60):
        admitted = np.flatnonzero(np.unpackbits(constraint.masks(())[0].view(np.uint8), bitorder="little"))
        if not len(admitted):
            assert constraint.failure is not None
            break
        assert constraint.take([int(random.choice(admitted))]) or constraint.failure is not None


async def test_a_form_that_takes_too_long_is_refused_and_others_are_told_to_come_later(tokenizer: Tokenizer) -> None:
    impatient = Compiler(spelling_of(tokenizer, PADDED_VOCAB_SIZE), timeout_s=0.0)
    results = await asyncio.gather(
        *(impatient.constraint(SamplingParams(regex="a")) for _ in range(4)), return_exceptions=True
    )
    assert all(isinstance(result, Exception) for result in results)
    impatient.stop()


async def test_without_an_end_of_sequence_id_no_form_is_kept_and_without_a_form_nothing_is_compiled() -> None:
    compiler = Compiler(None)
    with pytest.raises(InvalidRequest, match="end-of-sequence"):
        await compiler.constraint(SamplingParams(regex="a"))
    assert await compiler.constraint(SamplingParams()) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"regex": "a{1000000}"},
        {"regex": "(((a{100}){100}){100})"},
        {"json_schema": '{"$ref":"#"}'},
        {"json_schema": '{"anyOf":[{"$ref":"#"}]}'},
    ],
    ids=str,
)
def test_a_form_that_is_too_much_from_the_beginning_is_the_requests_fault(
    compiler: Compiler, fields: dict[str, str]
) -> None:
    with pytest.raises(InvalidRequest, match="within the limits") as refused:
        compiler.compile(SamplingParams(**fields))  # type: ignore[arg-type]
    assert refused.value.field in fields


def test_a_broken_regex_is_refused_in_one_line_of_plain_words(compiler: Compiler) -> None:
    with pytest.raises(InvalidRequest) as refused:
        compiler.compile(SamplingParams(regex="("))
    assert refused.value.allowed == "one that can be kept to: unclosed group"
