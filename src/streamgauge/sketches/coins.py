"""Whose coins: what keeps the random samples of several sites apart.

Sketches that are to be merged have equal seeds, since equal items must hash to equal cells. Coins
have to differ all the more: where two sites toss the same, their samples hold or miss arrivals
together, the errors add up instead of cancelling out, and the variance of the merged estimate is
that of one site times the square of the number of sites, of which the proof allows the first
power only. So coins are seeded by the seed and the site's name, and samples that share a site are
not merged. A site numbers its arrivals, and a merged sketch goes on with the name of its first
part and with numbers beyond the sum of all: that part has used smaller ones, nobody else has used
its name, and whatever has is refused.
"""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from streamgauge import items, seeds, ticks
from streamgauge.sketches.merging import NotMergeable

MOST_SITES = 1 << 16

_LONGEST_NAME = 256
_LIMIT = 1 << 63

Site = (
    Annotated[int, msgspec.Meta(ge=-_LIMIT, le=_LIMIT - 1)]
    | Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]
)
Sites = Annotated[tuple[Site, ...], msgspec.Meta(min_length=1, max_length=MOST_SITES)]


def require_site(site: Any) -> Site:
    """The name of a site: an int of 64 bits or a short str."""
    if isinstance(site, str):
        if len(site) > _LONGEST_NAME:
            raise ValueError(f"site must have at most {_LONGEST_NAME} characters, got {len(site)}")
        _word(site)  # refuses what no bytes can say
        return site
    if not ticks.is_whole(site):
        raise ValueError(f"site must be an integer or text, got {site!r}")
    if not -_LIMIT <= site < _LIMIT:
        raise ValueError(f"site must lie in [-2**63, 2**63), got {site}")
    return int(site)


def coins_seed(seed: int, site: Site) -> int:
    """What a site's coins are expanded from; different for different sites of one seed."""
    salted = int(seeds.expand(seed, 1)[0]) ^ _word(site)
    return int(seeds.expand(salted, 1)[0])


def union(parts: Sequence[tuple[Site, ...]]) -> tuple[Site, ...]:
    """The sites of several samples; NotMergeable if some of them flip the same coins."""
    sites = tuple(site for part in parts for site in part)
    if len(sites) > MOST_SITES:
        raise NotMergeable(f"sites must be at most {MOST_SITES} together, got {len(sites)}")
    words = set()
    for site in sites:
        word = _word(site)
        if word in words:
            raise NotMergeable(
                f"sites must differ: equal ones flip the same coins, got {site!r} twice"
            )
        words.add(word)
    return sites


def _word(site: Site) -> int:
    return int(items.words(site, "site")[0][0])
