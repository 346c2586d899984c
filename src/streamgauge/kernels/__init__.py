"""The only compiled code. A kernel module, and numba with it, is loaded at its first use."""

import importlib
from types import ModuleType

__all__ = [
    "bitpack",
    "columns",
    "exphist",
    "exphistbits",
    "hashing",
    "heavy",
    "heavybits",
    "labels",
    "merging",
    "order",
    "randomized",
    "randomizedbits",
    "stack",
    "wave",
    "wavebits",
    "windowed",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
