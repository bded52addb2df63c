from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ClearCorpusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ClearCorpusResponse(_message.Message):
    __slots__ = ("remembers",)
    REMEMBERS_FIELD_NUMBER: _ClassVar[int]
    remembers: bool
    def __init__(self, remembers: _Optional[bool] = ...) -> None: ...
