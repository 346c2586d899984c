"""The two answers are what they are documented to be: tuples in this order."""

from streamgauge import Estimate, ItemEstimate


def test_an_estimate_is_value_low_high_confidence():
    value, low, high, confidence = Estimate(3.0, 2.0, 4.0, 0.9)
    assert (value, low, high, confidence) == (3.0, 2.0, 4.0, 0.9)
    assert repr(Estimate(3.0, 2.0, 4.0, 0.9)) == (
        "Estimate(value=3.0, low=2.0, high=4.0, confidence=0.9)"
    )


def test_an_item_keeps_the_form_it_was_given_in():
    assert ItemEstimate("a", Estimate(1.0, 1.0, 1.0, 1.0)).item == "a"
