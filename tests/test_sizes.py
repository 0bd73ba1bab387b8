"""Sizes: known by name, and back to what they were."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ebda.sizes import Sizes, override, sizes


def test_sizes_are_other_ones_inside_the_block_only() -> None:
    before = vars(sizes).copy()
    with override(tile_rows=3, tile_elements=100):
        assert (sizes.tile_rows, sizes.tile_elements) == (3, 100)
        with override(tile_rows=4):
            assert (sizes.tile_rows, sizes.tile_elements) == (4, 100)
        assert sizes.tile_rows == 3
    assert vars(sizes) == before == vars(Sizes())


def test_an_error_inside_of_the_block_resets_them_too() -> None:
    with pytest.raises(KeyError), override(tile_rows=3):
        raise KeyError
    assert vars(sizes) == vars(Sizes())


def test_unknown_sizes_are_named_and_none_is_changed() -> None:
    with (
        pytest.raises(TypeError, match="no size named tile_cols, tiles"),
        override(tiles=1, tile_rows=3, tile_cols=2),
    ):
        pytest.fail("inside")
    assert vars(sizes) == vars(Sizes())


def test_every_size_is_documented() -> None:
    text = Sizes.__doc__ or ""
    assert [name for name in vars(sizes) if name not in text] == []


def test_tests_patch_no_private_name() -> None:
    """What they need small is a size; what they replace has a public name."""
    patched = []
    for path in Path(__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in PATCHES:
                names = [a.value for a in node.args[:2] if isinstance(a, ast.Constant)]
                parts = ".".join(map(str, names)).split(".")
                patched += [f"{path.name}: {p}" for p in parts if is_private(p)]
            elif isinstance(node, ast.Attribute) and node.attr in DEFAULTS:
                patched.append(f"{path.name}: {node.attr}")
    assert not patched


PATCHES = {"monkeypatch.setattr", "monkeypatch.delattr", "mock.patch", "setattr"}
DEFAULTS = {"__defaults__", "__kwdefaults__"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")
