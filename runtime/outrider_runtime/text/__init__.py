"""Text and token ids: tokenizer, incremental decoding and chat templates, without torch or transformers."""

from outrider_runtime.text.chat_template import ChatTemplate
from outrider_runtime.text.incremental_decoder import IncrementalDecoder
from outrider_runtime.text.tokenizer import Tokenizer

__all__ = ["ChatTemplate", "IncrementalDecoder", "Tokenizer"]
