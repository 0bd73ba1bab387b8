"""The classes that a model file can hold: importing this module registers all of them.

A class declares its :class:`~ebda.storage.objects.Schema` beside its definition. What
is imported here is a fixed list: nothing in a file decides what is imported.

A fitted attribute is listed in the schema, or it is not in the file. Left out are the
samples that ``partial_fit`` keeps (a model file holds nobody's data) and the
variational posteriors of the batches of a Dirichlet process, which nothing reads after
the fit.

To change the format: a new optional field needs nothing else (an older ebda says that
it does not know it); a new meaning of an old one needs a new version, and a fixture.
"""

from __future__ import annotations

import ebda.baselines
import ebda.estimators.classifier
import ebda.estimators.normal_means
import ebda.evaluation
import ebda.inputs.training_values  # noqa: F401
from ebda.storage.objects import Nested

# What a file holds: one object of these.
MODEL, EVALUATION = Nested("model"), Nested("evaluation")
TRAINING = Nested(("TrainingValues",))
