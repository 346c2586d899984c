"""The text that words stand for, kept as long as somebody needs it."""

import numpy as np

from streamgauge import kernels
from streamgauge.items import Texts, Words

_LEAST = 1024  # slots
_MORE = 8192  # texts that may be kept for nothing: with fewer, `keep` took a third of an update


class Labels:
    """Texts by their words. What is no longer needed goes with `keep`, which `is_full` asks for."""

    def __init__(self) -> None:
        self._clear(_LEAST, 1)
        self._limit = _MORE

    def _clear(self, slots: int, room: int) -> None:
        self._words = np.zeros(slots, np.uint64)
        self._begins, self._ends = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
        self._texts = np.zeros(room, np.uint8)
        self._count, self._used = 0, 1

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self._words.nbytes + self._begins.nbytes + self._ends.nbytes + self._texts.nbytes

    @property
    def is_full(self) -> bool:
        """Whether there are many more texts than were needed when `keep` was last asked."""
        return self._count > self._limit

    def add(self, words: Words, texts: Texts) -> None:
        """Remember the text of every word that is new."""
        room = self._used + int((texts.ends - texts.begins).sum())
        if room > self._texts.size:
            self._texts = np.concatenate([self._texts, np.zeros(room, np.uint8)])
        if 3 * (self._count + words.size) > 2 * self._words.size:
            self._spread(self._count + words.size)
        fresh, self._used = kernels.labels.add(
            self._words, self._begins, self._ends, self._texts, self._used, words, *texts
        )
        self._count += fresh

    def _spread(self, count: int) -> None:
        """Over slots enough for so many."""
        old = self._ends > 0
        words = self._words[old]
        texts = self.texts(words)
        self._clear(1 << (2 * count).bit_length(), self._texts.size)
        self._count, self._used = kernels.labels.add(
            self._words, self._begins, self._ends, self._texts, self._used, words, *texts
        )

    def keep(self, words: Words) -> None:
        """Forget all but these."""
        texts = self.texts(words)
        self._clear(_LEAST, 1)
        self.add(words, texts)
        self._limit = 2 * self._count + _MORE

    def texts(self, words: Words) -> Texts:
        """The texts of words that are there."""
        begins, ends = np.empty(words.size, np.int64), np.empty(words.size, np.int64)
        kernels.labels.find(self._words, self._begins, self._ends, words, begins, ends)
        data = self._texts.view()
        data.flags.writeable = False  # as that of users: one compiled kernel serves both
        return Texts(data, begins, ends)

    def named(self, words: Words) -> list[str | bytes]:
        """The same as items: str where the text is valid UTF-8, else bytes."""
        texts = self.texts(words)
        data = texts.data.tobytes()
        spans = zip(texts.begins.tolist(), texts.ends.tolist(), strict=True)
        return [_decoded(data[begin:end]) for begin, end in spans]


def _decoded(text: bytes) -> str | bytes:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text
