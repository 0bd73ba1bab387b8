"""The import direction of design.md, proved on the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ebda

ROOT = Path(ebda.__file__).parent

# One layer per room, from the bottom up. A module may import its own room and those
# above it in this list.
LAYERS = [
    {
        "typing",
        "cached",
        "sizes",
        "files",
        "listing",
        "palette",
        "registry",
        "storage",
        "tables",
    },
    {"jobs"},
    {"kernels"},
    {"moments"},
    {"data"},
    {"priors"},
    {"covariance"},
    {"rule"},
    {"selection"},
    {"theory"},
    {"estimators"},
    {"baselines"},
    {"evaluation", "scanpy"},
    {"datasets"},
    {"paper"},
    {"inputs"},
    {"modelfile"},
    {"plotting"},
    {"report"},
    {"cli"},
    {"__init__", "__main__"},
]
# Rooms that know nothing of scikit-learn.
STEPS = {
    "typing",
    "cached",
    "sizes",
    "files",
    "listing",
    "palette",
    "registry",
    "storage",
    "tables",
    "jobs",
    "kernels",
    "moments",
    "data",
    "priors",
    "covariance",
    "rule",
    "selection",
    "theory",
}
NUMERICAL = {"numpy", "scipy"}
# The shells of the prior families are estimators; one module runs jobs in parallel,
# and one limits the threads of BLAS.
ESTIMATOR_SHELLS = {
    "priors/__init__.py": {"sklearn"},
    "priors/base.py": {"sklearn"},
    "priors/check.py": {"sklearn"},
    "priors/dp/dirichlet_process.py": {"sklearn"},
    "priors/mixture_estimator.py": {"sklearn"},
    "priors/npmle.py": {"sklearn"},
    "priors/stacked.py": {"sklearn"},
    "jobs.py": {"joblib"},
    "storage/objects.py": {"sklearn"},
    "kernels/threads.py": {"threadpoolctl", "joblib"},
    "kernels/compiled.py": {"numba"},
}
# Modules of the steps with a method that hands out a table of an extra.
TABLES = {
    "tables.py": {"pandas"},
    "kernels/compiled.py": {"numba"},
    "data/disk/parquet.py": {"pyarrow"},
}
# The room that works on a cluster; nothing but a Dask array leads there.
CLUSTER = {"dask", "distributed"}

# Modules that need an extra, and say so where it is missing.
EXTRAS = {
    "compiled.py",
    "lasso_path.py",
    "onnx.py",
    "parquet.py",
    "progress.py",
    "reproduce.py",
    "scanpy.py",
    "tables.py",
}


def imports(path: Path, when_loaded: bool = False) -> set[str]:
    """Names that a module imports, anywhere or outside of functions only."""
    found = set()
    tree = ast.parse(path.read_text())
    for node in tree.body if when_loaded else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


def layer_of(room: str) -> int:
    return next(i for i, rooms in enumerate(LAYERS) if room in rooms)


def sources() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_every_module_has_a_layer() -> None:
    rooms = {room_of(path) for path in sources()}
    assert rooms == set().union(*LAYERS)


def test_modules_import_only_from_below() -> None:
    for path in sources():
        here = layer_of(room_of(path))
        for name in imports(path):
            if not name.startswith("ebda."):
                continue
            room = name.split(".")[1]
            if room in set().union(*LAYERS):
                assert layer_of(room) <= here, f"{path} imports {name}"


def test_the_numerical_layer_needs_numpy_and_scipy_only() -> None:
    standard = sys.stdlib_module_names
    for path in sources():
        if room_of(path) not in STEPS:
            continue
        local = path.relative_to(ROOT).as_posix()
        allowed = NUMERICAL | ESTIMATOR_SHELLS.get(local, set()) | {"ebda"}
        allowed |= TABLES.get(local, set())
        allowed |= CLUSTER if local.startswith("data/dask/") else set()
        foreign = {n.split(".")[0] for n in imports(path)} - allowed - standard
        assert not foreign, f"{local} imports {foreign}"


def test_tables_are_imported_where_they_are_made() -> None:
    for local, extras in TABLES.items():
        loaded = {n.split(".")[0] for n in imports(ROOT / local, when_loaded=True)}
        assert not loaded & extras, f"{local} imports {extras} when it is loaded"


def test_the_core_needs_no_extra() -> None:
    allowed = (
        NUMERICAL
        | {"sklearn", "joblib", "threadpoolctl", "ebda"}
        | sys.stdlib_module_names
    )
    for path in sources():
        if room_of(path) == "plotting" or path.name in EXTRAS:
            continue
        if path.parent.name == "dask":
            continue
        foreign = {n.split(".")[0] for n in imports(path)} - allowed
        assert not foreign, f"{path} imports {foreign}"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, ebda; print('numpy' in sys.modules or 'sklearn' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


@pytest.mark.slow
def test_what_few_fits_need_is_loaded_by_these() -> None:
    code = "import sys; from ebda import EBClassifier; "
    code += "print('scipy.signal' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"


def test_public_names_are_there_when_asked_for() -> None:
    assert ebda.EBClassifier.__name__ == "EBClassifier"
    assert ebda.NormalMeans.__name__ == "NormalMeans"
    assert ebda.priors.DirichletProcess.__name__ == "DirichletProcess"
    assert "EBClassifier" in dir(ebda)
    assert not hasattr(ebda, "nothing")
