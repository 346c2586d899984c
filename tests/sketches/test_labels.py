"""Texts by their words, kept as long as they are needed."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import items
from streamgauge.sketches.labels import Labels

texts = st.lists(st.text(max_size=20) | st.binary(max_size=20), max_size=60)


def as_given(text):
    """str where the bytes are UTF-8."""
    data = text.encode() if isinstance(text, str) else text
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


@given(st.lists(texts, max_size=5), st.data())
def test_every_word_has_its_text_until_it_is_dropped(batches, data):
    """Through growth and `keep`."""
    labels, known = Labels(), {}
    for batch in batches:
        words, _, found = items.named(batch)
        if found is not None:
            labels.add(words, found)
        known |= dict(zip(words.tolist(), map(as_given, batch), strict=True))
        if data.draw(st.booleans()):
            kept = data.draw(st.sets(st.sampled_from(sorted(known)))) if known else set()
            labels.keep(np.array(sorted(kept), np.uint64))
            known = {word: known[word] for word in kept}
        asked = np.array(sorted(known), np.uint64)
        assert labels.named(asked) == [known[word] for word in sorted(known)]


def test_they_are_full_when_twice_as_many_as_were_needed_are_there():
    labels = Labels()
    many = [str(i) for i in range(30_000)]
    words, _, found = items.named(many)
    for begin in range(0, 30_000, 1000):
        part = slice(begin, begin + 1000)
        data, begins, ends = found
        labels.add(words[part], items.Texts(data, begins[part], ends[part]))
        labels.add(words[part], items.Texts(data, begins[part], ends[part]))
        if labels.is_full:
            break
    assert begin == 8000
    labels.keep(words[:5])
    assert not labels.is_full
    assert labels.nbytes < 100_000
    assert labels.named(words[:5]) == many[:5]
