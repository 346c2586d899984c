"""Who is there, up to when each of them has been heard, and who is silent.

A site has been heard up to tick t when the coordinator knows all that it had to say up to t: a
message tells it, and so does a frame of the session without one (`Received.heard`). A protocol
bounds what a site hides while it *chooses* to say nothing. A site that is down or cut off does not
choose: from the last tick it was heard at it may hide anything. So after `patience` ticks without
a word it is called silent, and as long as one is,

    low holds as before (what was reported expires by itself), high is infinite.

Whoever shows an answer can say who it lacks, and that the rest is known up to `as_of`. With
patience None nobody is ever called silent: for drivers that know by themselves whether all
messages have arrived.

A site that leaves has said everything before and hides nothing; what it reported stays in the
answers until it has expired. A site that forgot everything and begins anew is another site under
the same name: what the first had reported stays likewise, what it had not said is lost with it.
"""

from collections.abc import Iterable

from streamgauge.protocols.messages import SiteName

Heard = tuple[SiteName, int | None]


class Members:
    """The sites that are there, each with the tick up to which it has been heard."""

    def __init__(self, patience: int | None, heard: Iterable[Heard] = ()) -> None:
        if patience is not None and patience < 0:
            raise ValueError(f"patience must not be negative, got {patience}")
        self.patience = patience
        self._heard: dict[SiteName, int | None] = dict(heard)

    def hear(self, site: SiteName, now: int | None) -> None:
        """A site is there, and has said everything up to `now`."""
        before = self._heard.get(site)
        self._heard[site] = now if before is None or (now is not None and now > before) else before

    def leave(self, site: SiteName) -> None:
        """A site is not there any more."""
        self._heard.pop(site, None)

    def silent(self, now: int | None) -> tuple[SiteName, ...]:
        """Who has not been heard for longer than patience allows, or never."""
        if self.patience is None or now is None:
            return ()
        return tuple(
            site
            for site, heard in self._heard.items()
            if heard is None or now - heard > self.patience
        )

    @property
    def as_of(self) -> int | None:
        """The tick up to which all who have ever been heard have been."""
        return min((heard for heard in self._heard.values() if heard is not None), default=None)

    @property
    def names(self) -> list[SiteName]:
        """The sites, in the order in which they came."""
        return list(self._heard)

    def state(self) -> list[Heard]:
        """What makes equal members."""
        return list(self._heard.items())
