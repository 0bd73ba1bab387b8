"""Damaged, truncated, hostile and newer model files: one error, and nothing worse."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ebda
from ebda import EBClassifier, ModelFileError, NormalMeans
from ebda.evaluation import cross_validate
from ebda.modelfile import container
from ebda.modelfile.container import DIGEST_BYTES, ENVELOPE, MAGIC, MAX_HEADER, VERSION
from ebda.storage.arrays import Description, decode
from ebda.storage.errors import FormatError

FIXTURE = Path(__file__).parent / "data" / "model-v1.ebda"
GOOD = FIXTURE.read_bytes()


def seal(header: bytes, payload: bytes, version: int = VERSION) -> bytes:
    """A file with sizes and checksum that fit: what a hostile author would write."""
    total = ENVELOPE.size + len(header) + len(payload) + DIGEST_BYTES
    start = ENVELOPE.pack(MAGIC, version, len(header), total)
    body = start + header + payload
    return body + hashlib.sha256(body).digest()


def unseal(raw: bytes) -> tuple[bytes, bytes]:
    _, _, n, _ = ENVELOPE.unpack(raw[: ENVELOPE.size])
    return (
        raw[ENVELOPE.size : ENVELOPE.size + n],
        raw[ENVELOPE.size + n : -DIGEST_BYTES],
    )


HEADER, PAYLOAD = unseal(GOOD)


def load_bytes(raw: bytes, tmp_path: Path) -> Any:
    path = tmp_path / "file.ebda"
    path.write_bytes(raw)
    return ebda.load_record(path)


def refused(raw: bytes, tmp_path: Path, message: str) -> None:
    with pytest.raises(ModelFileError, match=message) as caught:
        load_bytes(raw, tmp_path)
    assert "file.ebda" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


# --- what can happen to a file on its way


def test_sealing_is_what_the_package_does() -> None:
    assert seal(HEADER, PAYLOAD) == GOOD


def test_a_truncated_file_says_so(tmp_path: Path) -> None:
    for n in (1, 7, 8, 23, 24, 500, len(GOOD) - 1):
        refused(GOOD[:n], tmp_path, rf"truncated: it ends after {n} .*copy it again")
    refused(b"", tmp_path, "it is empty")


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    for place in (30, len(GOOD) // 2, len(GOOD) - 1, 9):
        broken = bytearray(GOOD)
        broken[place] ^= 4
        refused(bytes(broken), tmp_path, "damaged: its checksum .*copy it again")
    refused(GOOD + b"\0", tmp_path, "damaged: it has .* bytes and says")
    tiny = ENVELOPE.pack(MAGIC, 1, 0, ENVELOPE.size)
    refused(tiny, tmp_path, "damaged: it has 24 bytes and says 24")


def test_a_file_copied_as_text_says_so(tmp_path: Path) -> None:
    refused(GOOD.replace(b"\r\n", b"\n"), tmp_path, "as text; copy it again as binary")
    seven_bits = bytes([GOOD[0] & 0x7F]) + GOOD[1:]
    refused(seven_bits, tmp_path, "as text; copy it again as binary")


def test_a_newer_file_says_what_to_do(tmp_path: Path) -> None:
    newer = seal(b'{"wholly": "different"}', b"", version=VERSION + 1)
    refused(newer, tmp_path, rf"version {VERSION + 1} .*upgrade it: pip install")
    refused(seal(HEADER, PAYLOAD, version=0), tmp_path, "no version 0")


class Exploit:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("owned",)


def test_other_files_are_not_model_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../model.json", b"0" * 10_000_000)
    array = io.BytesIO()
    np.save(array, np.array([Exploit()], dtype=object), allow_pickle=True)
    for other in (
        pickle.dumps(Exploit()),
        bomb.getvalue(),
        array.getvalue(),
        b"sample,gene\na,1\n",
        b"\0" * 100,
        MAGIC[:1] + b"PNG\r\n\x1a\n" + b"\0" * 30,
    ):
        refused(other, tmp_path, "not an ebda model file; give a file that ebda.save")
    for inside in (pickle.dumps(Exploit()), bomb.getvalue()):
        refused(seal(inside, b""), tmp_path, "header is not JSON")
    assert not (tmp_path / "owned").exists()


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(ModelFileError, match="not a regular file"):
            ebda.load(path)
    with pytest.raises(FileNotFoundError):
        ebda.load(tmp_path / "nothing")


def test_a_file_of_a_terabyte_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.ebda"
    with path.open("wb") as stream:
        stream.write(ENVELOPE.pack(MAGIC, 1, 10, 1 << 40))
        stream.truncate(1 << 40)
    start = time.perf_counter()
    with pytest.raises(ModelFileError, match="are the limit"):
        ebda.load(path)
    assert time.perf_counter() - start < 1


def test_a_file_that_shrinks_while_it_is_read_is_refused() -> None:
    for entry in (
        {"dtype": "<f8", "shape": [4]},
        {"dtype": "object", "shape": [1], "bytes": 9},
    ):
        description = Description.from_json(entry, 0)
        with pytest.raises(FormatError, match="became shorter"):
            decode(description, io.BytesIO(b"\0" * 5), 0)
    with pytest.raises(FormatError, match="became shorter"):
        container._verify(io.BytesIO(GOOD[:-50]), len(GOOD))


# --- headers that ebda does not write, with a checksum that fits


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'"\xc3\xa9"', "not JSON in ASCII"),
        (b'{"a": NaN}', "holds NaN"),
        (b'{"a": -Infinity}', "holds -Infinity"),
        (b'{"a": 1e999}', "a number that is too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "whole number that is too large"),
        (b'{"a": 1, "a": 2}', "a key twice"),
        (b'{"a": ' + b"[" * 500_000, "nested too deep"),
        (b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", "nested too deep"),
        (b"{}", "lists no arrays"),
        (b'{"arrays": {}}', "lists no arrays"),
        (b'{"arrays": [' + b"0," * 1000 + b"0]}", "1001 arrays, and a model has a few"),
    ],
)
def test_a_header_that_is_not_ours(header: bytes, message: str, tmp_path: Path) -> None:
    refused(seal(header, b""), tmp_path, message)


def test_a_header_larger_than_allowed(tmp_path: Path) -> None:
    refused(seal(b" " * (MAX_HEADER + 1), b""), tmp_path, "header has .* too much")
    raw = bytearray(GOOD)
    struct.pack_into("<I", raw, 12, len(GOOD) - 10)
    body = bytes(raw[:-DIGEST_BYTES])
    sealed = body + hashlib.sha256(body).digest()
    refused(sealed, tmp_path, "header has .* too much")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (3, "not described"),
        ({}, "unknown dtype None"),
        ({"dtype": "O", "shape": [1]}, "unknown dtype 'O'"),
        ({"dtype": "|O8", "shape": [1]}, "unknown dtype"),
        ({"dtype": ["<f8"], "shape": [1]}, "unknown dtype"),
        ({"dtype": "<f8" * 1000, "shape": [1]}, "unknown dtype .{,70}$"),
        ({"dtype": "<f8", "shape": 3}, "impossible shape"),
        ({"dtype": "<f8", "shape": []}, "impossible shape"),
        ({"dtype": "<f8", "shape": [1, 1, 1, 1]}, "impossible shape"),
        ({"dtype": "<f8", "shape": [-1]}, "impossible shape"),
        ({"dtype": "<f8", "shape": [1.0]}, "impossible shape"),
        ({"dtype": "<f8", "shape": [True]}, "impossible shape"),
        ({"dtype": "<f8", "shape": [2**63]}, "impossible shape"),
        ({"dtype": "<f8", "shape": [2**40, 2**40, 2**40]}, "there are 8: it was not"),
        ({"dtype": "<f8", "shape": [0, 2**40]}, "should have 0 bytes"),
        ({"dtype": "<f8", "shape": [1], "order": "X"}, "unknown order"),
        ({"dtype": "<f8", "shape": [1], "more": 1}, "described by more than"),
        ({"dtype": "object", "shape": [1, 1], "bytes": 8}, "impossible shape"),
        ({"dtype": "object", "shape": [2**40], "bytes": 8}, "impossible size"),
        ({"dtype": "object", "shape": [1]}, "impossible size None"),
        ({"dtype": "object", "shape": [1], "bytes": 8}, "other lengths"),
        ({"dtype": "object", "shape": [0], "bytes": 8}, "other lengths"),
        ({"dtype": "|b1", "shape": [8]}, "other than 0 and 1"),
    ],
)
def test_arrays_that_cannot_be(entry: Any, message: str, tmp_path: Path) -> None:
    header = json.dumps({"arrays": [entry]}).encode()
    payload = struct.pack("<II", 400, 2)
    refused(seal(header, payload), tmp_path, message)


def test_strings_that_cannot_be(tmp_path: Path) -> None:
    entry = {"dtype": "object", "shape": [1], "bytes": 5}
    header = json.dumps({"arrays": [entry]}).encode()
    refused(seal(header, b"\1\0\0\0\xff"), tmp_path, "not UTF-8")
    # One long label, and a matrix of 100,001 x 100,000 characters of four bytes.
    n = 100_000
    texts = b"x" * n
    lengths = np.append(np.zeros(n, "<u4"), np.uint32(n)).astype("<u4").tobytes()
    entry = {"dtype": "str", "shape": [n + 1], "bytes": len(lengths) + n}
    header = json.dumps({"arrays": [entry]}).encode()
    refused(seal(header, lengths + texts), tmp_path, "labels that are too long")


Edit = Callable[[dict[str, Any]], Any]


def at(*path: str) -> Callable[[dict[str, Any], Any], None]:
    def put(header: dict[str, Any], value: Any) -> None:
        for key in path[:-1]:
            header = header[key]
        if value is ...:
            del header[path[-1]]
        else:
            header[path[-1]] = value

    return put


MODEL = ("model", "fields")
PRIOR = (*MODEL, "prior_estimator_", "fields", "prior_", "fields")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), 1, "has 'format', which this ebda does not know"),
        (("written_by",), 3, "written_by is not of type str"),
        (("data",), [1], "data are not a JSON object"),
        (("model",), 1, r"the model is not one of .*EBClassifier"),
        (("model", "class"), "os.system", "the model is not one of"),
        (("model", "class"), "DiscretePrior", "the model is not one of"),
        (("model", "class"), ["EBClassifier"], "the model is not one of"),
        (("model", "class"), "FAIR", r"model\.parameters has .*, which this"),
        (("model", "more"), 1, "other parts than"),
        (("model", "fields"), [], "not a JSON object"),
        (("model", "parameters"), None, "not a JSON object"),
        (("model", "parameters", "__class__"), 1, "has '__class__', which this ebda"),
        (("model", "parameters", "shrinkage"), "no", "cannot be: shrinkage must"),
        (("model", "parameters", "variance"), [1], "cannot be: variance must"),
        (("model", "parameters", "zero_threshold"), "1", "cannot be: zero_thresh"),
        (("model", "parameters", "priors"), {"a": 1}, "priors is not one of Dir"),
        (("model", "parameters", "prior", "class"), "Selection", "is not one of D"),
        (("model", "parameters", "prior", "fields"), {}, "a parameter, and fitted"),
        ((*MODEL, "predict"), 1, "has 'predict', which this ebda does not know"),
        ((*MODEL, "coef_"), ..., "lacks coef_"),
        ((*MODEL, "coef_"), [1.0], "coef_ is not an array"),
        ((*MODEL, "coef_"), {"array": 10**6}, "coef_ is not an array"),
        ((*MODEL, "coef_"), {"array": -1}, "coef_ is not an array"),
        ((*MODEL, "coef_"), {"array": True}, "coef_ is not an array"),
        ((*MODEL, "coef_"), {"array": 0, "b": 0}, "coef_ is not an array"),
        ((*MODEL, "coef_"), {"array": 0}, "array of <U3, and not of float64"),
        ((*MODEL, "classes_"), {"array": 1}, "classes_ .*"),
        ((*MODEL, "n_features_in_"), 41, r"has the shape \(40,\), and should .*41"),
        ((*MODEL, "n_features_in_"), 40.0, "not of type int"),
        ((*MODEL, "n_features_in_"), 0, "less than 1"),
        ((*MODEL, "n_factors_"), True, "not of type int"),
        ((*MODEL, "selection_", "fields", "candidates"), [], "list of pairs"),
        ((*MODEL, "selection_", "fields", "candidates"), [["a"]], "list of pairs"),
        ((*MODEL, "selection_", "fields", "slope"), {"float": "nan"}, "not finite"),
        ((*MODEL, "selection_", "fields", "slope"), {"float": []}, "type float"),
        ((*MODEL, "selection_", "fields", "scores"), ..., None),
        ((*MODEL, "selection_", "fields", "slope"), -1.0, "slope is less than 0"),
        (
            (*MODEL, "selection_", "fields", "candidates"),
            [["diagonal", "mean"], ["diagonal", "mean"]],
            "candidates holds a pair twice",
        ),
        ((*MODEL, "calibration_", "fields", "noise"), 2, "noise is more than 1"),
        ((*MODEL, "calibration_", "fields", "noise"), 0.5, "must sum to 1, not to"),
        ((*MODEL, "prior_estimator_", "fields", "prior_"), ..., "no fitted prior"),
        ((*MODEL, "prior_estimator_", "class"), "Selection", "is not one of Dir"),
        (
            (*MODEL, "contrasts_", "fields", "scale"),
            ...,
            "variance factor of the",
        ),
        (("evaluation",), None, "the evaluation is not one of Evaluation"),
    ],
)
def test_edits_of_the_header(
    path: tuple[str, ...], value: Any, message: str | None, tmp_path: Path
) -> None:
    header = json.loads(HEADER)
    at(*path)(header, value)
    raw = seal(json.dumps(header).encode(), PAYLOAD)
    refused(raw, tmp_path, message or "an array that nothing refers to")


def with_array(
    change: Callable[[np.ndarray[Any, Any]], None],
    *path: str,
    dtype: str = "<f8",
    good: tuple[bytes, bytes] = (HEADER, PAYLOAD),
) -> bytes:
    """The good file with the numbers of one of its arrays changed."""
    header = json.loads(good[0])
    reference = header
    for key in path:
        reference = reference[key]
    sizes = [Description.from_json(e, 0).n_bytes for e in header["arrays"]]
    place = reference["array"]
    start = sum(sizes[:place])
    payload = bytearray(good[1])
    values = np.frombuffer(payload[start : start + sizes[place]], dtype).copy()
    change(values)
    payload[start : start + sizes[place]] = values.tobytes()
    return seal(good[0], bytes(payload))


def to(value: Any, place: int = 0) -> Callable[[Any], None]:
    return lambda a: a.__setitem__(place, value)


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ((*MODEL, "coef_"), to(np.nan), "coef_ must be finite"),
        ((*MODEL, "intercept_"), to(np.inf), "intercept_ must be finite"),
        (
            (*MODEL, "calibration_", "fields", "slope"),
            to(0.0),
            "slope must be positive",
        ),
        (
            (*MODEL, "calibration_", "fields", "share"),
            to(np.nan),
            "share must be finite",
        ),
        ((*MODEL, "class_prior_"), to(0.0), "class_prior_ must be positive"),
        ((*MODEL, "class_prior_"), to(0.9), "class_prior_ must be a distribution"),
        ((*MODEL, "calibration_", "fields", "share"), to(0.9), "must sum to 1, not to"),
        ((*MODEL, "selection_", "fields", "weight"), to(7.0), "must be a distribution"),
        ((*MODEL, "selection_", "fields", "error"), to(-1.0), "free of negative num"),
        ((*MODEL, "contrasts_", "fields", "positive"), to(7.0), "in each row"),
        (("evaluation", "fields", "probabilities"), to(0.5, 1), "in each row"),
        (
            (*MODEL, "posterior_", "fields", "log_weights"),
            to(-9.0),
            "must be logs of a distribution",
        ),
        ((*MODEL, "moments_", "fields", "counts"), to(-1.0), "must be positive"),
        ((*PRIOR, "atoms"), to(9.0), "atoms must be ascending"),
        ((*PRIOR, "weights"), to(9.0), "weights must be a distribution"),
        ((*MODEL, "posterior_", "fields", "scale"), to(0.0), "must be positive"),
        ((*MODEL, "contrasts_", "fields", "scale"), to(1e300), "do not go together"),
        (
            (*MODEL, "posterior_", "fields", "log_weights"),
            to(1.0),
            "must be zero or less",
        ),
    ],
)
def test_numbers_out_of_range(
    path: tuple[str, ...], change: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    refused(with_array(change, *path), tmp_path, message)


def test_places_and_names_that_cannot_be(tmp_path: Path) -> None:
    codes = ("evaluation", "fields", "codes")
    for value in (-1, 2, 2**62):
        raw = with_array(to(value), *codes, dtype="<i8")
        refused(raw, tmp_path, "codes holds indices out of range")
    twice = PAYLOAD.replace(b"gene 0gene 1", b"gene 1gene 1")
    refused(seal(HEADER, twice), tmp_path, "must be free of duplicates")
    unsorted = PAYLOAD.replace(b"ALLAML", b"AMLALL")
    refused(seal(HEADER, unsorted), tmp_path, "classes_ must be ascending")
    header = json.loads(HEADER)
    header["model"]["fields"]["feature_names_in_"] = {"array": 3}
    refused(seal(json.dumps(header).encode(), PAYLOAD), tmp_path, "and not of object")


def test_an_evaluation_of_other_classes_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 5)), np.repeat([0, 1], 6)
    model = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, y)
    evaluation = cross_validate(model, X, y, n_folds=2)
    object.__setattr__(evaluation, "classes", np.array([0, 1]))  # not shared
    path = tmp_path / "model.ebda"
    ebda.save(model, path, evaluation)
    header, payload = unseal(path.read_bytes())
    where = ("evaluation", "fields", "classes")
    raw = with_array(to(5, 1), *where, dtype="<i8", good=(header, payload))
    refused(raw, tmp_path, "of other classes than the model")


def test_fewer_than_two_labels(tmp_path: Path) -> None:
    header = json.loads(HEADER)
    header["arrays"].append({"dtype": "str", "shape": [1], "bytes": 5})
    header["model"]["fields"]["classes_"] = {"array": len(header["arrays"]) - 1}
    raw = seal(json.dumps(header).encode(), PAYLOAD + b"\1\0\0\0a")
    refused(raw, tmp_path, "fewer than two labels")
    header["arrays"][-1] = {"dtype": "<f8", "shape": [2]}
    raw = seal(json.dumps(header).encode(), PAYLOAD + struct.pack("<dd", 1, np.inf))
    refused(raw, tmp_path, "classes_ must be finite")


def test_the_unit_of_contrasts_is_one_for_all_or_one_for_each(tmp_path: Path) -> None:
    header = json.loads(HEADER)
    contrasts = header["model"]["fields"]["contrasts_"]["fields"]
    del contrasts["scale"]
    contrasts["unit"] = {"array": len(header["arrays"])}
    header["arrays"].append({"dtype": "<f8", "shape": [1, 2]})
    raw = seal(json.dumps(header).encode(), PAYLOAD + struct.pack("<dd", 1, 1))
    refused(raw, tmp_path, "another number of features")


def test_shapes_of_flat_values(tmp_path: Path) -> None:
    path = tmp_path / "means.ebda"
    ebda.save(NormalMeans(prior="normal").fit([0.0, 1.0, 4.0]), path)
    text, payload = unseal(path.read_bytes())
    for value, message in (
        ([4], r"log_zero has the shape \(3,\), and should have \(4,\)"),
        ([-3], "is not a shape"),
        ([3.0], "is not a shape"),
        ([1, 1, 3], "is not a shape"),
        (3, "is not a shape"),
    ):
        header = json.loads(text)
        header["model"]["fields"]["posterior_"]["fields"]["shape"] = value
        refused(seal(json.dumps(header).encode(), payload), tmp_path, message)
    header = json.loads(text)
    fields = header["model"]["fields"]["posterior_"]["fields"]["masses"]["fields"]
    fields["log_sides"] = fields["log_zero"]
    raw = seal(json.dumps(header).encode(), payload)
    refused(raw, tmp_path, r"log_sides has .* \(3,\), and should have \('2', 3\)")
    prior = header["model"]["fields"]["prior_estimator_"]["fields"]["prior_"]
    prior["fields"]["tau"] = -1
    raw = seal(json.dumps(header).encode(), payload)
    refused(raw, tmp_path, "cannot be: tau must be positive")


def test_a_kernel_prior_has_values(tmp_path: Path) -> None:
    """Without any, the model would load and fail at its first posterior."""
    path = tmp_path / "means.ebda"
    ebda.save(NormalMeans(prior="kernel").fit([0.0, 1.0, 4.0]), path)
    text, payload = unseal(path.read_bytes())
    header = json.loads(text)
    prior = header["model"]["fields"]["prior_estimator_"]["fields"]["prior_"]
    prior["fields"]["values"] = {"array": len(header["arrays"])}
    header["arrays"].append({"dtype": "<f8", "shape": [0]})
    raw = seal(json.dumps(header).encode(), payload)
    refused(raw, tmp_path, "values must be not empty")


def test_masses_have_a_finite_sum(tmp_path: Path) -> None:
    path = tmp_path / "means.ebda"
    ebda.save(NormalMeans(prior="normal").fit([0.0, 1.0, 4.0]), path)
    masses = ("model", "fields", "posterior_", "fields", "masses", "fields")
    good = unseal(path.read_bytes())
    raw = with_array(to(np.inf), *masses, "log_zero", good=good)
    refused(raw, tmp_path, "have no finite sum")


def test_parameters_nested_too_deep(tmp_path: Path) -> None:
    header = json.loads(HEADER)
    nested: Any = "dp"
    for _ in range(12):
        nested = {"class": "FixedPrior", "parameters": {"prior": nested}}
    header["model"]["parameters"]["prior"] = nested
    refused(seal(json.dumps(header).encode(), PAYLOAD), tmp_path, "nested too deep")


# --- two thousand mutations


def flip(raw: bytearray, draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 2, 8])):
        raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)


def overwrite(raw: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(raw))
    size = draw.choice([1, 4, 8, 32])
    filler = draw.choice([0, 0xFF, 0x7F, draw.randrange(256)])
    raw[start : start + size] = bytes([filler]) * size


def truncate(raw: bytearray, draw: random.Random) -> None:
    del raw[draw.randrange(len(raw)) :]


def insert(raw: bytearray, draw: random.Random) -> None:
    place = draw.randrange(len(raw))
    raw[place:place] = draw.randbytes(draw.choice([1, 2, 8, 100]))


def splice(raw: bytearray, draw: random.Random) -> None:
    source, target = draw.randrange(len(raw)), draw.randrange(len(raw))
    size = draw.randrange(1, 200)
    raw[target : target + size] = raw[source : source + size]


BYTES = [flip, overwrite, truncate, insert, splice]
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**40,
    2**63,
    1.5,
    -1e308,
    "",
    "F",
    "|O8",
    "<f4",
    "object",
    "NPMLE",
    "DiscretePrior",
    [],
    {},
    [0],
    [2**40, 2**40],
    {"array": 0},
    {"array": 5},
    {"float": "nan"},
    {"tuple": [1]},
    {"class": "Kernel", "parameters": {}},
]


def nodes(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON tree, as its container and key."""
    found: list[tuple[Any, Any]] = []
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        found.append((value, key))
        if isinstance(value[key], dict | list):
            found.extend(nodes(value[key]))
    return found


def edit_tree(header: dict[str, Any], draw: random.Random) -> None:
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        container, key = draw.choice(nodes(header))
        action = draw.randrange(5)
        if action == 0:
            del container[key]
        elif action == 1 and isinstance(container, dict):
            container[draw.choice([*container, "extra"])] = container.pop(key)
        elif action == 2:
            other, name = draw.choice(nodes(header))
            container[key] = copy.deepcopy(other[name])
        else:
            container[key] = copy.deepcopy(draw.choice(ODD))


def mutated(draw: random.Random, kind: int) -> bytes:
    """One mutation: of the file as it lies, or with a checksum that fits again."""
    mutate = draw.choice(BYTES)
    if kind == 0:
        raw = bytearray(GOOD)
        mutate(raw, draw)
        return bytes(raw)
    if kind == 1:
        header = json.loads(HEADER)
        edit_tree(header, draw)
        return seal(json.dumps(header).encode(), PAYLOAD)
    text, payload = bytearray(HEADER), bytearray(PAYLOAD)
    mutate(text if kind == 2 else payload, draw)
    return seal(bytes(text), bytes(payload), draw.choice([1] * 20 + [0, 2**32 - 1]))


def use(record: Any) -> None:
    """What a command does with a model; numbers may overflow, with a ValueError."""
    model = record.model
    with suppress(ValueError):  # scores that overflow
        labels = model.predict(np.ones((2, model.n_features_in_)))
        assert set(labels) <= set(model.classes_)
    assert len(model.ranking_.order) == model.n_features_in_
    assert str(model.selection_)
    if record.evaluation is not None:
        assert 0 <= record.evaluation.error <= 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_two_thousand_mutations_end_in_success_or_one_error(tmp_path: Path) -> None:
    draw = random.Random(20)
    path = tmp_path / "file.ebda"
    loaded, slowest, messages = 0, 0.0, []
    for i in range(2000):
        path.write_bytes(mutated(draw, i % 4))
        start = time.process_time()
        try:
            record = ebda.load_record(path)
        except ModelFileError as error:
            messages.append(str(error))
        else:
            loaded += 1
            with np.errstate(all="ignore"):
                use(record)
        slowest = max(slowest, time.process_time() - start)
    assert 20 < loaded < 1000  # some edits do no harm; most are found out
    assert slowest < 2
    assert all(str(path) in message for message in messages)
    assert max(map(len, messages)) < 1000
    assert not any("\n" in message for message in messages)


# --- memory


HOSTILE: dict[str, Callable[[], bytes]] = {
    "giant shape": lambda: seal(
        b'{"arrays": [{"dtype": "<f8", "shape": [1099511627776, 1099511627776]}]}', b""
    ),
    "many strings": lambda: seal(
        b'{"arrays": [{"dtype": "object", "shape": [1099511627775], "bytes": '
        b"4398046511100}]}",
        b"",
    ),
    "objects": lambda: seal(
        b'{"a":[' + b'{"a":0},' * ((MAX_HEADER - 20) // 8) + b"0]}", b""
    ),
    "lists": lambda: seal(b'{"a":[' + b"[]," * ((MAX_HEADER - 20) // 3) + b"0]}", b""),
    "strings": lambda: seal(
        b'{"a":[' + b'"ab",' * ((MAX_HEADER - 20) // 5) + b"0]}", b""
    ),
    "keys": lambda: seal(
        b"{" + b",".join(b'"%x":0' % i for i in range(MAX_HEADER // 10)) + b"}", b""
    ),
    "deep": lambda: seal(b"[" * (MAX_HEADER - 1), b""),
    "empty arrays": lambda: seal(
        b'{"arrays":['
        + b'{"dtype":"<f8","shape":[0]},' * ((MAX_HEADER - 100) // 28)
        + b'{"dtype":"<f8","shape":[0]}]}',
        b"",
    ),
    "one long name": lambda: seal(
        b'{"arrays":[{"dtype":"str","shape":[1000001],"bytes":5000004}]}',
        b"\0" * 4_000_000 + struct.pack("<I", 1_000_000) + b"x" * 1_000_000,
    ),
    "short names": lambda: seal(
        b'{"arrays":[{"dtype":"object","shape":[1000000],"bytes":6000000}]}',
        np.full(1_000_000, 2, "<u4").tobytes() + b"ab" * 1_000_000,
    ),
}
PROBE = """
import resource, sys, time
import ebda.modelfile, ebda.modelfile.record
page = resource.getpagesize()
used = int(open("/proc/self/statm").read().split()[0]) * page
resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000, resource.RLIM_INFINITY))
for path in sys.argv[1:]:
    start = time.process_time()
    try:
        ebda.load(path)
    except ebda.ModelFileError as error:
        assert time.process_time() - start < 20, path
        print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits memory by Linux's RLIMIT_AS"
)
def test_no_file_takes_more_than_200_megabytes(tmp_path: Path) -> None:
    """With so much left to the process, hostile files still end in the one error."""
    paths = []
    for name, make in HOSTILE.items():
        path = tmp_path / f"{name}.ebda"
        path.write_bytes(make())
        paths.append(path)
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *paths], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(HOSTILE), done.stdout
