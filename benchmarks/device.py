"""Fits on a GPU against the same fits on the processor, and against the bars.

    python benchmarks/device.py [--library torch] [--device cuda] [--quick]
        [--parts moments fit tall permutations stream] [--out docs/benchmarks]

Every part prints its numbers as it ends, and ``device.json`` in the folder keeps them
with the machine. With --quick sizes are a tenth, for a look at whether all parts run.
It needs ``array_api_compat`` and the library; CuPy beside PyTorch or JAX makes the
moments faster.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import os
import platform
import pstats
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # which scikit-learn asks for

import numpy as np
from sklearn import config_context

from bars import Bar, to_markdown
from ebda import EBClassifier
from ebda.data import Labels, as_data, as_host, on_device
from ebda.data.device import LIBRARIES, Library
from ebda.data.disk.passes import BlockedData, prefetched
from ebda.evaluation import permutation_test
from ebda.kernels import compiled, cuda
from ebda.kernels.threads import allow_threads
from ebda.moments import class_moments
from speed_data import data

# What the issue asks for.
BANDWIDTH, FIT, TALL, PERMUTATIONS, STREAM = 0.25, 5.0, 3.0, 10.0, 1.3
# Results on the device and on the processor.
APART = 1e-8
SHOWN = 25


@dataclass
class Bench:
    """A device, sizes, and what was found.

    Parameters
    ----------
    library : Library
        Whose arrays are fitted to.
    device : object
        Where they lie.
    less : int
        What sizes are divided by.
    found : dict
        Numbers by name.
    """

    library: Library
    device: Any
    less: int
    found: dict[str, Any]

    def put(self, values: np.ndarray) -> Any:
        return self.library.put(values, self.device)

    def finish(self, value: Any = None) -> None:
        """Wait for the device: a number of one value must come back."""
        if self.library.name == "torch" and "cuda" in str(self.device):
            import_module("torch").cuda.synchronize()
        elif self.library.name == "cupy":
            import_module("cupy").cuda.Device().synchronize()
        elif value is not None:
            as_host(value)
        if cuda.available():
            import_module("cupy").cuda.Device().synchronize()

    def seconds(self, job: Callable[[], Any], turns: int, inner: int = 1) -> float:
        """Median over some turns of the time of one call; the first is not counted."""
        self.finish(job())
        took = []
        for _ in range(turns):
            start = time.perf_counter()
            for _ in range(inner):
                value = job()
            self.finish(value)
            took.append((time.perf_counter() - start) / inner)
            del value
        return median(took)

    def say(self, **numbers: Any) -> None:
        self.found |= numbers
        for name, value in numbers.items():
            shown = f"{value:.4g}" if isinstance(value, float) else value
            print(f"{name}: {shown}", flush=True)


def relative(got: Any, want: Any) -> float:
    return float(np.abs(got - want).max() / np.abs(want).max())


def profile(job: Callable[[], Any]) -> list[str]:
    """The steps of a fit as it prints them, and the functions that take longest."""
    steps, table = io.StringIO(), io.StringIO()
    watch = cProfile.Profile()
    with redirect_stdout(steps):
        watch.runcall(job)
    pstats.Stats(watch, stream=table).sort_stats("tottime").print_stats(SHOWN)
    lines = [*steps.getvalue().splitlines(), *table.getvalue().splitlines()]
    return [line.rstrip() for line in lines if line.strip()]


def wide(bench: Bench) -> tuple[np.ndarray, np.ndarray, Any]:
    X, y = data(60, 2_000_000 // bench.less)
    return X, y, bench.put(X)


def moments(bench: Bench) -> None:
    """Moments of 60 x 2,000,000 against a copy on the device."""
    X, y, there = wide(bench)
    xp = bench.library.namespace()
    # Far more than the cache of the device holds.
    big = bench.put(np.zeros(1_000_000_000 // bench.less, dtype=np.float32))
    bandwidth = 2 * big.nbytes / bench.seconds(lambda: xp.asarray(big, copy=True), 9)
    labels, source = Labels(y, 2), as_data(there)
    assert source is not None
    rows = np.arange(len(y))

    def on_the_device() -> Any:
        if cuda.suits(there):
            return cuda.class_sums_on_device(there, rows, y, 2, None, missing=False)
        return source.summarise(labels, keep=False)

    took = bench.seconds(on_the_device, 9, inner=20)
    both = bench.seconds(lambda: source.summarise(labels, keep=False), 9)
    with allow_threads(None):
        host = bench.seconds(lambda: class_moments(X, y, 2), 5)
    got, _ = source.summarise(labels, keep=False)
    want = class_moments(X, y, 2)
    bench.say(
        moments_kernel="CUDA" if cuda.suits(there) else "array API",
        copy_gb_s=bandwidth / 1e9,
        moments_s=took,
        moments_gb_s=X.nbytes / took / 1e9,
        moments_share=X.nbytes / took / bandwidth,
        moments_and_transfer_s=both,
        moments_processor_s=host,
        moments_apart=max(
            relative(got.means, want.means),
            relative(got.centred_squares, want.centred_squares),
        ),
    )


def fit(bench: Bench) -> None:
    """The default fit of 60 x 2,000,000, on the device and on all cores."""
    X, y, there = wide(bench)
    host = bench.seconds(lambda: EBClassifier().fit(X, y), 5)
    took = bench.seconds(lambda: EBClassifier().fit(there, y), 5)
    want, got = EBClassifier().fit(X, y), EBClassifier().fit(there, y)
    scores = as_host(got.decision_function(there))
    bench.say(
        fit_processor_s=host,
        fit_s=took,
        fit_times_faster=host / took,
        fit_apart=max(
            relative(got.coef_, want.coef_), relative(scores, want.decision_function(X))
        ),
        fit_profile=profile(lambda: EBClassifier(verbose=1).fit(there, y)),
        fit_processor_profile=profile(lambda: EBClassifier(verbose=1).fit(X, y)),
    )
    print(*bench.found["fit_profile"], sep="\n")
    print(*bench.found["fit_processor_profile"], sep="\n", flush=True)


def tall(bench: Bench) -> None:
    """The default fit of 2,000 x 1,000,000."""
    X, y = data(2_000, 1_000_000 // bench.less)
    there = bench.put(X)
    took = bench.seconds(lambda: EBClassifier().fit(there, y), 2)
    bench.say(
        tall_s=took,
        tall_profile=profile(lambda: EBClassifier(verbose=1).fit(there, y)),
    )
    print(*bench.found["tall_profile"], sep="\n", flush=True)
    start = time.perf_counter()
    want = EBClassifier().fit(X, y)
    bench.say(tall_processor_s=time.perf_counter() - start)
    got = EBClassifier().fit(there, y)
    bench.say(tall_apart=relative(got.coef_, want.coef_))


def permutations(bench: Bench) -> None:
    """200 permutations of the labels of 100 x 20,000."""
    X, y = data(100, 20_000)
    count = 200 // bench.less
    there = bench.put(X)
    took, errors = [], []
    for given in (X, there):
        permutation_test(EBClassifier(), given, y, 16, n_jobs=-1)
        start = time.perf_counter()
        found = permutation_test(EBClassifier(), given, y, count, n_jobs=-1)
        took.append(time.perf_counter() - start)
        errors.append(found.permuted)
    bench.say(
        permutations_agree=bool(np.array_equal(*errors)),
        permutations_processor_s=took[0],
        permutations_s=took[1],
        permutations_times_faster=took[0] / took[1],
    )


def stream(bench: Bench) -> None:
    """A memory map of 2,000 x 1,000,000, read alone and read through the device."""
    n, p = 2_000, 1_000_000 // bench.less
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        X, y = data(n, p)
        np.save(path, X)
        del X
        stored = np.load(path, mmap_mode="r")
        source = as_data(stored)
        assert isinstance(source, BlockedData)

        def read() -> None:
            for _ in prefetched(source.source, source.source.plan()):
                pass

        through = on_device(stored, str(bench.device), bench.library.name)
        labels = Labels(y, 2)
        alone = bench.seconds(read, 3)
        took = bench.seconds(lambda: through.summarise(labels, keep=False)[0].counts, 3)
        host = bench.seconds(lambda: source.summarise(labels, keep=False)[0].counts, 3)
        plain = EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)
        whole = bench.seconds(lambda: plain.fit(through, y).intercept_, 2)
        bench.say(
            stream_gb=n * p * 4 / 1e9,
            read_s=alone,
            stream_s=took,
            stream_over_reading=took / alone,
            stream_processor_s=host,
            stream_fit_s=whole,
            stream_profile=profile(lambda: through.summarise(labels, keep=False)),
        )
        print(*bench.found["stream_profile"], sep="\n", flush=True)


PARTS = {part.__name__: part for part in (moments, fit, tall, permutations, stream)}


def bars(found: dict[str, Any]) -> list[Bar]:
    get = found.get
    return [
        Bar("moments, share of copy bandwidth", get("moments_share"), BANDWIDTH, True),
        Bar("moments, apart", get("moments_apart"), APART),
        Bar("fit, times faster", get("fit_times_faster"), FIT, True),
        Bar("fit, apart", get("fit_apart"), APART),
        Bar("fit of 2,000 x 1,000,000, s", get("tall_s"), TALL),
        Bar("fit of 2,000 x 1,000,000, apart", get("tall_apart"), APART),
        Bar(
            "200 permutations, times faster",
            get("permutations_times_faster"),
            PERMUTATIONS,
            True,
        ),
        Bar("streamed over reading", get("stream_over_reading"), STREAM),
    ]


def machine(library: str) -> dict[str, Any]:
    """What the numbers were measured on."""
    names = ["numpy", "scipy", "scikit-learn", "numba", "array-api-compat"]
    versions = {}
    for name in [*names, library, "cupy-cuda13x"]:
        try:
            versions[name] = version(name)
        except Exception:
            versions[name] = "not installed"
    asked = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version"]
    try:
        gpu = subprocess.run(
            [*asked, "--format=csv,noheader"], capture_output=True, text=True
        ).stdout.strip()
    except OSError:
        gpu = "none"
    return {
        "device": gpu,
        "cores": len(os.sched_getaffinity(0)),
        "processor": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "versions": versions,
        "compiled_loops": compiled.available(),
        "cuda_kernel": cuda.available(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="torch", choices=list(LIBRARIES))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="a tenth of the features")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    library = LIBRARIES[options.library]
    place = library.named(options.device)
    bench = Bench(library, place, 10 if options.quick else 1, {})
    found = {"machine": machine(options.library), "library": options.library}
    print(json.dumps(found), flush=True)
    failed = []
    with config_context(array_api_dispatch=True):
        for name in options.parts:
            print(f"\n## {name}: {PARTS[name].__doc__}", flush=True)
            try:
                PARTS[name](bench)
            except Exception:  # the other parts are worth having
                traceback.print_exc()
                failed.append(name)
            found |= bench.found
            options.out.mkdir(parents=True, exist_ok=True)
            record = json.dumps(found, indent=1, default=str) + "\n"
            (options.out / "device.json").write_text(record)
    print("\n" + "\n".join(to_markdown(bars(found))))
    if failed:
        sys.exit(f"parts that failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
