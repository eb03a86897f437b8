"""The examples in the library's docstrings."""

import doctest
import importlib
import pkgutil

import pytest

import geartrain.client

MODULES = sorted(module.name for module in pkgutil.walk_packages(geartrain.client.__path__, "geartrain.client."))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
