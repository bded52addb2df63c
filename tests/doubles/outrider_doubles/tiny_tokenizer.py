"""A byte-level tokenizer of 320 tokens with a chat template: any text can be encoded, every byte has an id."""

from __future__ import annotations

import json
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

TINY_VOCAB_SIZE = 320
EOS_ID = 0
EOS = "<|endoftext|>"
SPECIAL_TOKENS = (EOS, "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_WORDS = "the and ing ion ent for tha nth int est ati hat ers his res ver all tio hal was"


def ids_of(text: str) -> tuple[int, ...]:
    """One id for each character of `text`, which is printable ASCII without spaces."""
    first = "!"
    return tuple(len(SPECIAL_TOKENS) + ord(character) - ord(first) for character in text)


def write_tiny_tokenizer(folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json of the tiny tokenizer into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    vocab = {
        token: index for index, token in enumerate([*SPECIAL_TOKENS, *sorted(pre_tokenizers.ByteLevel.alphabet())])
    }
    merges: list[tuple[str, str]] = []
    for pair in _pairs():
        if len(vocab) < TINY_VOCAB_SIZE and "".join(pair) not in vocab:
            merges.append(pair)
            vocab["".join(pair)] = len(vocab)
    for spare in range(TINY_VOCAB_SIZE - len(vocab)):
        vocab[f"spare{spare}"] = len(vocab)
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": EOS, "chat_template": CHAT_TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def _pairs() -> list[tuple[str, str]]:
    """Merges for the beginnings of some words, with and without a space before them."""
    pairs = [(word[:2], word[2]) for word in _WORDS.split()] + [("Ġ" + word[:1], word[1]) for word in _WORDS.split()]
    firsts = [(word[0], word[1]) for word in _WORDS.split()] + [("Ġ", word[0]) for word in _WORDS.split()]
    return firsts + pairs
