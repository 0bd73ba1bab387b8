"""A model as a file: JSON and arrays, a version, a checksum; loading runs no code.

>>> import tempfile
>>> import numpy as np
>>> import ebda
>>> from ebda.datasets import make_two_class
>>> sim = make_two_class(n_features=200, effect=1.0, random_state=0)
>>> model = ebda.EBClassifier().fit(sim.data, sim.target)
>>> with tempfile.TemporaryDirectory() as folder:
...     ebda.save(model, f"{folder}/model.ebda")
...     again = ebda.load(f"{folder}/model.ebda")
>>> bool(np.array_equal(again.predict_proba(sim.data), model.predict_proba(sim.data)))
True

The bytes are described in :mod:`ebda.modelfile.container`, what is kept of each class
in :mod:`ebda.modelfile.schemas`. There is no pickle, no compression and no name of a
member anywhere. What is allocated is bounded by the size of the file, every byte is
accounted for and under the checksum, and every array is checked for type, shape and
range before a model is made of it.
"""

from ebda.modelfile.container import VERSION
from ebda.modelfile.record import Record, load, load_record, save
from ebda.storage.errors import ModelFileError

__all__ = ["VERSION", "ModelFileError", "Record", "load", "load_record", "save"]
