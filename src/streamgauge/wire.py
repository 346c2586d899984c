"""Versioned bytes: how state and messages leave a process, and the only way back in.

    b"SG" | version | type | length of the header, 4 bytes | header | payload

The header is a msgspec array, decoded into its declared type with every bound checked; the
payload belongs to the type. Bytes from outside can be anything: what comes of them is an object
or WireError, within time in proportion to their length and memory in proportion to what the
specification in them asks for, capped. Sizes are measured here, as the length of what is sent, and
nowhere else.
"""

import struct
from functools import cache
from typing import Any, TypeVar

import msgspec

MAGIC = b"SG"
VERSION = 0  # until release 0.1.0: a change replaces the golden files

WAVE, ECM, EXPHIST, RANDOMIZED, DYADIC, GATHERED, HEAVY = 1, 2, 3, 4, 5, 6, 7
COUNTMIN, PERFECT, SIMPLE, PROPORTIONAL, SPLITTER = 8, 9, 10, 11, 12
PERIODIC_SITE, PERIODIC_COORDINATOR = 32, 33
POLLING_SITE, POLLING_COORDINATOR = 34, 35
SHIPPING_SITE, SHIPPING_COORDINATOR = 36, 37
SESSION_END = 48
SPARK_DESK = 64

_LEAD = struct.Struct("<2sBBI")

T = TypeVar("T")


class WireError(ValueError):
    """The bytes are not what they should be."""


def frame(kind: int, header: msgspec.Struct, payload: bytes = b"") -> bytes:
    """One object's bytes."""
    head = msgspec.msgpack.encode(header)
    return b"".join((_LEAD.pack(MAGIC, VERSION, kind, len(head)), head, payload))


def kind_of(data: Any) -> int:
    """The type of the object in these bytes; WireError if they do not begin as any."""
    view = _view(data)
    if len(view) < _LEAD.size or view[:2] != MAGIC:
        raise WireError("not streamgauge bytes")
    return int(view[3])


def unframe(data: Any, kind: int, header: type[T]) -> tuple[T, memoryview]:
    """The header and payload of one object of this type; WireError if it is anything else."""
    view = _view(data)
    if len(view) < _LEAD.size:
        raise WireError(f"truncated: {len(view)} bytes are fewer than the lead of {_LEAD.size}")
    magic, version, found, length = _LEAD.unpack_from(view)
    if magic != MAGIC:
        raise WireError(f"not streamgauge bytes: they start with {magic!r}")
    if version != VERSION:
        raise WireError(f"format version {version} is not readable here, {VERSION} is")
    if found != kind:
        raise WireError(f"type {found} found where type {kind} is expected")
    there = len(view) - _LEAD.size
    if there < length:
        raise WireError(f"truncated: the header has {length} bytes, {there} are there")
    end = _LEAD.size + length
    return _decode(view[_LEAD.size : end], header), view[end:]


def unframe_bare(data: Any, kind: int, header: type[T]) -> T:
    """The header of one object of this type, which has no payload."""
    found, payload = unframe(data, kind, header)
    if payload:
        raise WireError(f"{len(payload)} bytes go on beyond the end")
    return found


def encode(message: msgspec.Struct) -> bytes:
    """One message's bytes; its type declares its tag."""
    return msgspec.msgpack.encode(message)


def decode(data: Any, messages: Any) -> Any:
    """The message of one of the given types (a type or a union) in `data`, or WireError."""
    return _decode(_view(data), messages)


def _view(data: Any) -> memoryview:
    try:
        return memoryview(data).cast("B")
    except (TypeError, ValueError, BufferError):
        raise WireError(f"bytes expected, got {type(data).__name__}") from None


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind)


def _decode(data: Any, kind: Any) -> Any:
    try:
        return _decoder(kind).decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(str(error)[:300]) from None
