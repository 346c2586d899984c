"""Frames and messages: there and back, and what comes of anything else."""

import array

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import wire
from streamgauge.wire import WireError, decode, encode, frame, unframe


class Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    name: str
    size: int


class Ping(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, tag=1):
    number: int


class Pong(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True, tag=2):
    octets: bytes


FRAME = frame(wire.WAVE, Header("é", 7), b"payload")


@given(st.text(), st.integers(-(2**63), 2**64 - 1), st.binary(), st.integers(0, 255))
def test_a_frame_holds_its_header_and_payload(name, size, payload, kind):
    header, rest = unframe(frame(kind, Header(name, size), payload), kind, Header)
    assert (header, bytes(rest)) == (Header(name, size), payload)


def test_a_frame_is_pinned():
    """Magic, version 0, type, length of the header, header, payload.

    Seen to catch: the header's length is written big end first.
    """
    header = b"\x92\xa2\xc3\xa9\x07"
    assert FRAME == b"SG" + bytes([0, 1]) + (5).to_bytes(4, "little") + header + b"payload"


@pytest.mark.parametrize(
    "same",
    [bytearray(FRAME), memoryview(FRAME), np.frombuffer(FRAME, np.uint8), array.array("b", FRAME)],
)
def test_bytes_may_lie_in_any_buffer(same):
    header, rest = unframe(same, wire.WAVE, Header)
    assert (header, bytes(rest)) == (Header("é", 7), b"payload")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("text", "bytes expected, got str"),
        (None, "bytes expected, got NoneType"),
        (5, "bytes expected, got int"),
        (np.array(["2024"], "M8[s]"), "bytes expected, got ndarray"),
        (np.zeros((2, 2))[:, 0], "bytes expected, got ndarray"),
        (b"", "truncated: 0 bytes are fewer than the lead of 8"),
        (FRAME[:7], "truncated: 7 bytes are fewer than the lead of 8"),
        (b"PK" + FRAME[2:], "not streamgauge bytes: they start with b'PK'"),
        (b"SG\x01" + FRAME[3:], "format version 1 is not readable here, 0 is"),
        (b"SG\x00\x02" + FRAME[4:], "type 2 found where type 1 is expected"),
        (FRAME[:12], "truncated: the header has 5 bytes, 4 are there"),
        (FRAME[:4] + b"\xff" * 4 + FRAME[8:], None),
        (FRAME[:4] + b"\x04\0\0\0" + FRAME[8:], None),
        (FRAME[:4] + b"\x06\0\0\0" + FRAME[8:], None),
        (frame(wire.WAVE, Ping(7)), None),
    ],
    ids=repr,
)
def test_anything_else_is_a_wire_error(data, message):
    with pytest.raises(WireError) as refused:
        unframe(data, wire.WAVE, Header)
    assert message is None or str(refused.value) == message


def test_a_wire_error_is_a_value_error():
    assert issubclass(WireError, ValueError)


@given(st.builds(Ping, st.integers(-(2**63), 2**64 - 1)) | st.builds(Pong, st.binary()))
def test_messages_tell_their_types_apart(message):
    assert decode(encode(message), Ping | Pong) == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",  # in no msgpack
        b"\x92\x03\x07",  # an unknown tag
        b"\x92\x01\xa1a",  # text for a number
        b"\x92\x02\xa1a",  # text for bytes
        b"\x93\x01\x07\x07",  # a field too many
        b"\x91\x01",  # a field too few
        b"\x92\x01",  # cut off
        b"\x92\x01\x07\x00",  # a byte after the end
        "text",
        None,
    ],
)
@pytest.mark.parametrize("messages", [Ping, Ping | Pong])
def test_no_other_message_is_read(data, messages):
    with pytest.raises(WireError):
        decode(data, messages)


@pytest.mark.parametrize(
    "data",
    [b"\x91" * 100_000, b"\x81\x01" * 100_000, b"\xdd\xff\xff\xff\xff", b"\x91\xd9\x01\xff"],
    ids=["lists", "maps", "a long list", "not UTF-8"],
)
@pytest.mark.parametrize("kind", [Ping, object, list[str], dict[str, int], list[list[object]]])
def test_no_nesting_and_no_length_is_too_much(data, kind):
    with pytest.raises(WireError):
        decode(data, kind)


@given(st.binary(max_size=50))
def test_random_bytes_are_an_object_or_a_wire_error(data):
    for read in (lambda: decode(data, Ping | Pong), lambda: unframe(data, wire.WAVE, Header)):
        try:
            read()
        except WireError:
            pass
