"""What all protocols say alike: who a message is for, what an answer is, what is against rules."""

from typing import Annotated, Literal, NamedTuple

import msgspec

from streamgauge.estimate import Estimate

SiteName = int | str
COORDINATOR: Literal["coordinator"] = "coordinator"

Number = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class Leave(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag=0):
    """A site's last message: it has said everything, and will have no more events."""

    number: Number


class Send(NamedTuple):
    """A message that the driver is to deliver: to the coordinator, or to the site so named."""

    to: SiteName
    message: msgspec.Struct


class Answer(NamedTuple):
    """A coordinator's answer and how far it reaches."""

    estimate: Estimate
    as_of: int | None  # up to then every site has been heard
    in_flight: int  # how many sites' replies the coordinator is waiting for
    silent: tuple[SiteName, ...] = ()  # who may hide anything: `high` is infinite then


class ProtocolError(Exception):
    """The peer said what it cannot have to say: it runs another version or was tampered with."""
