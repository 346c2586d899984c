"""Public names load at first use, and each of them is there."""

import importlib

import pytest


@pytest.mark.parametrize("package", ["streamgauge", "streamgauge.spark"])
def test_every_public_name_is_there(package):
    module = importlib.import_module(package)
    assert sorted(module.__all__) == sorted(module._HOMES)
    for name in module.__all__:
        assert name in dir(module)
        assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nope'"):
        _ = module.nope
