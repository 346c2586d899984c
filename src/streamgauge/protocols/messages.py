"""What all protocols say alike: who a message is for, what an answer is, what is against rules."""

from typing import Literal, NamedTuple

import msgspec

from streamgauge.estimate import Estimate

SiteName = int | str
COORDINATOR: Literal["coordinator"] = "coordinator"


class Send(NamedTuple):
    """A message that the driver is to deliver: to the coordinator, or to the site so named."""

    to: SiteName
    message: msgspec.Struct


class Answer(NamedTuple):
    """A coordinator's answer and how far it reaches."""

    estimate: Estimate
    as_of: int | None  # the oldest clock among the sites' last reports
    in_flight: int  # how many sites' replies the coordinator is waiting for


class ProtocolError(Exception):
    """The peer said what it cannot have to say: it runs another version or was tampered with."""
