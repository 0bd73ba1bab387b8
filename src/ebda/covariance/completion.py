"""A positive definite correlation matrix from those of some pairs of features.

The correlations of some pairs are known: the edges of a graph. Of all correlation
matrices that have these, the one of largest entropy has an inverse that is zero for all
other pairs (Dempster 1972): what is not connected is independent, given the rest.
Features in an order such that the earlier partners of each one are partners of each
other, too, have it in closed form. Feature j is regressed on its earlier partners N,

    b = R_NN^-1 R_Nj,    v = 1 - R_jN b,    R^-1 = L' L,    L = V^-1/2 (I - B),

where each R_NN is a small matrix. Other graphs have no such order, and then this is an
approximation, as it is where a feature has more partners than count: the strongest do.
Whatever the graph, R is positive definite.

R_NN holds posterior means of all its pairs. They need not be a positive definite
matrix: then they are shrunken until the smallest eigenvalue is `LEAST_EIGENVALUE`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ebda.cached import cached_property
from ebda.covariance.correlation_prior import CorrelationPrior
from ebda.kernels.threads import no_fork
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

# Of the correlations of a feature and its partners.
LEAST_EIGENVALUE = 0.05
# A feature is regressed on at most so many: more cost more noise than they explain.
MOST_PARTNERS = 10


@dataclass(frozen=True, eq=False)
class Pairs:
    """Correlated pairs of features.

    Parameters
    ----------
    first, second : ndarray of int of shape (n_pairs,)
        The features, ``first < second``.
    correlation : ndarray of shape (n_pairs,)
        Posterior means, not zero.
    """

    first: IntArray
    second: IntArray
    correlation: FloatArray

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def features(self) -> IntArray:
        """Those with any partner, in increasing order."""
        return np.union1d(self.first, self.second)

    @cached_property
    def graph(self) -> sparse.csr_array:
        """The correlations of the features that have partners, symmetric."""
        q = len(self.features)
        i = np.searchsorted(self.features, self.first)
        j = np.searchsorted(self.features, self.second)
        upper = sparse.coo_array((self.correlation, (i, j)), shape=(q, q))
        return (upper + upper.T).tocsr()

    def order(self) -> IntArray:
        """The position of each feature that has partners in an elimination order.

        That of Cuthill and McKee, in which partners lie close together. What it is
        does not depend on the order of the features: they are sorted by their numbers
        of partners and the squares of their correlations first.
        """
        graph = self.graph
        strength = np.sum(graph.multiply(graph), axis=1)
        label = np.lexsort((np.asarray(strength).ravel(), np.diff(graph.indptr)))
        sorted_graph = sparse.csr_matrix(graph[label][:, label])
        sorted_graph.sort_indices()  # partners are visited in the order of storage
        found = label[reverse_cuthill_mckee(sorted_graph, symmetric_mode=True)]
        position = np.empty(len(found), dtype=np.intp)
        position[found] = np.arange(len(found))
        return position


def earlier_partners(pairs: Pairs, most: int = MOST_PARTNERS) -> list[IntArray]:
    """The strongest earlier partners of each feature that has partners.

    Parameters
    ----------
    pairs : Pairs
        Correlated pairs.
    most : int
        Of so many at most.

    Returns
    -------
    list of ndarray of int of shape (n_k, 1 + k)
        For ``k = 0, 1, ..., most`` the features with k of them: their partners, then
        the feature itself, as places in ``pairs.features``.
    """
    position = pairs.order()
    graph = pairs.graph.tocoo()
    i, j = graph.coords if hasattr(graph, "coords") else (graph.row, graph.col)
    earlier = position[j] < position[i]
    i, j, size = i[earlier], j[earlier], np.abs(graph.data[earlier])
    by_child = np.lexsort((position[j], -size, i))
    i, j = i[by_child], j[by_child]
    count = np.bincount(i, minlength=len(position))
    start = np.cumsum(count) - count
    nth = np.arange(len(i)) - start[i]
    count = np.minimum(count, most)
    i, j = i[nth < most], j[nth < most]
    groups = []
    for k in range(most + 1):
        own = np.flatnonzero(count == k)
        partners = j[count[i] == k].reshape(len(own), k)
        groups.append(np.column_stack([partners, own]))
    return groups


def inverse_root(
    pairs: Pairs,
    unit: npt.NDArray[np.float32],
    prior: CorrelationPrior,
    most: int = MOST_PARTNERS,
) -> sparse.csr_array:
    """L of the completed correlation of the features that have partners.

    Parameters
    ----------
    pairs : Pairs
        Correlated pairs.
    unit : ndarray of float32 of shape (n_features, n_samples)
        Residuals of all features, of length one.
    prior : CorrelationPrior
        Of the correlations.
    most : int
        Partners that a feature is regressed on at most.

    Returns
    -------
    csr_array of shape (n_connected, n_connected)
        Triangular in an order of the features that is not theirs.
    """
    rows, columns, values = [], [], []
    for group in earlier_partners(pairs, most):
        size = max(1, sizes.covariance_block // (group.shape[1] * unit.shape[1]))
        for start in range(0, len(group), size):
            own = group[start : start + size]
            weight = _regressions(unit[pairs.features[own]].astype(float), prior)
            rows.append(np.repeat(own[:, -1], own.shape[1]))
            columns.append(own.ravel())
            values.append(weight.ravel())
    q = len(pairs.features)
    place = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array(
        sparse.coo_array((np.concatenate(values), place), shape=(q, q))
    )


@no_fork()
def _regressions(unit: FloatArray, prior: CorrelationPrior) -> FloatArray:
    """Rows of L: minus the coefficients and one, over the root of what is left.

    Parameters
    ----------
    unit : ndarray of shape (n_rows, 1 + k, n_samples)
        Residuals of the partners of each feature, and of the feature itself.
    prior : CorrelationPrior
        Of the correlations.
    """
    k = unit.shape[1] - 1
    R = prior.shrink(unit @ unit.transpose(0, 2, 1))
    R[:, np.arange(k + 1), np.arange(k + 1)] = 0.0
    least = 1 + np.linalg.eigvalsh(R)[:, :1, None]
    R *= np.minimum((1 - LEAST_EIGENVALUE) / np.maximum(1 - least, 1e-300), 1.0)
    R[:, np.arange(k + 1), np.arange(k + 1)] = 1.0
    out = np.ones(R.shape[:2])
    out[:, :-1] = -np.linalg.solve(R[:, :-1, :-1], R[:, :-1, -1:])[:, :, 0]
    left = 1 + np.einsum("ij,ij->i", R[:, :-1, -1], out[:, :-1])
    out /= np.sqrt(left)[:, None]
    return out
