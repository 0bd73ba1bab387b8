"""Write docs/methods.md: every method that the paper names, and its errors.

Errors come from the records of ``ebda reproduce`` alone::

    python benchmarks/methods_page.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ebda.paper.runner import read_runs
from ebda.paper.studies import TABLES
from ebda.paper.summary import Cell, summarise

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "methods.md"
RECORDS = ROOT / "docs" / "reproduction" / "runs.jsonl"
# Methods with fewer repetitions in some row are named.
ENOUGH = 5


@dataclass(frozen=True)
class Method:
    """A method that the paper names, or that belongs beside them.

    Parameters
    ----------
    name : str
        As the paper has it.
    reference : str
        Who proposed it, and where.
    code : str
        What does it here, in MyST.
    where : str
        Equation or section of the reference.
    test, against : str
        The test that tells most, and what it compares with.
    key : str, optional
        Name in the records.
    """

    name: str
    reference: str
    code: str
    where: str
    test: str
    against: str
    key: str = ""


def _baseline(name: str, arguments: str = "") -> str:
    role = f"{{py:class}}`~ebda.baselines.{name}`"
    return f"{role} with `{arguments}`" if arguments else role


def _prior(name: str) -> str:
    return f"{{py:class}}`~ebda.priors.{name}`"


NAMED = (
    Method(
        "Bayes rule",
        "the paper",
        "{py:func}`ebda.paper.optimal_rule`",
        "equations 1 and 2",
        "test_theory.py::test_optimal_error_is_that_of_the_bayes_rule",
        "its own error by equation 5",
    ),
    Method(
        "LDA",
        "the paper; Bickel and Levina 2004, Bernoulli 10",
        _baseline("PseudoInverseLDA"),
        "the rule after equation 2, with the pseudo-inverse",
        "test_baselines.py::test_pseudo_inverse_is_lda_where_that_is_defined",
        "scikit-learn's LDA",
        "PseudoInverseLDA",
    ),
    Method(
        "RDA",
        "Friedman 1989, JASA 84",
        _baseline("RegularizedDA"),
        "equations 18 and 19",
        "test_regularized_da.py::test_it_is_its_definition",
        "the definition; LDA, QDA and IR at the corners",
        "RegularizedDA",
    ),
    Method(
        "thresholded covariance",
        "Bickel and Levina 2008, Annals of Statistics 36",
        _baseline("ThresholdedLDA"),
        "the threshold by section 3",
        "test_thresholded_lda.py::test_a_threshold_is_its_definition",
        "the definition; LDA and IR at the ends",
        "ThresholdedLDA",
    ),
    Method(
        "Sparse LDA",
        "Shao, Wang, Deng and Wang 2011, Annals of Statistics 39",
        _baseline("SparseLDA"),
        "section 3",
        "test_sparse_lda.py::test_it_is_its_definition",
        "the definition; LDA, IR and thresholded means at the corners",
        "SparseLDA",
    ),
    Method(
        "LPD",
        "Cai and Liu 2012, JASA 106",
        _baseline("LinearProgrammingDA"),
        "the linear program",
        "test_linear_programming_da.py::test_it_agrees_with_highs",
        "HiGHS on the whole program; the duality gap",
        "LinearProgrammingDA",
    ),
    Method(
        "IR",
        "Bickel and Levina 2004, Bernoulli 10; Domingos and Pazzani 1997",
        _baseline("IndependenceRule"),
        "equation 3 of the paper",
        "test_paper.py::test_table_7_other_rules",
        "the published errors",
        "IR",
    ),
    Method(
        "FAIR",
        "Fan and Fan 2008, Annals of Statistics 36",
        _baseline("FAIR"),
        "equation 4.3",
        "test_baselines.py::test_fair_with_unequal_classes_is_that_of_hidimda",
        "R's HiDimDA",
        "FAIR",
    ),
    Method(
        "EB",
        "Greenshtein and Park 2009, JMLR 10; Brown and Greenshtein 2009",
        f"{_baseline('GreenshteinPark')}, {_prior('Kernel')}",
        "Tweedie's formula with a kernel",
        "test_baselines.py::test_kernel_equals_the_reference",
        "the scripts' sums over all pairs",
        "EB",
    ),
    Method(
        "general maximum likelihood",
        "Jiang and Zhang 2009; Koenker and Mizera 2014, JASA 109",
        _prior("NPMLE"),
        "the maximum over all priors",
        "test_npmle.py::test_is_what_the_em_of_jiang_and_zhang_comes_to",
        "EM; a general solver; the optimality conditions",
        "NPMLE",
    ),
    Method(
        "Dicker and Zhao's classifier",
        "Dicker and Zhao 2016, Biometrika 103",
        _baseline("DickerZhao"),
        "the Bayes rule with NPMLE priors",
        "test_dicker_zhao.py::test_the_rule_is_its_definition",
        "the definition; `EBClassifier` with the same prior",
        "DickerZhao",
    ),
    Method(
        "two-group prior, Laplace slab",
        "Johnstone and Silverman 2004, Annals of Statistics 32",
        _prior("PointLaplace"),
        "the section on estimation; EbayesThresh",
        "test_priors_parametric.py::test_posterior_equals_quadrature",
        "quadrature",
        "PointLaplace",
    ),
    Method(
        "two-group prior, centred at the data",
        "Martin and Walker 2014, Electronic Journal of Statistics 8",
        _prior("MartinWalker"),
        "[the formulas](mathematics.md#priors-that-the-paper-names)",
        "test_martin_walker.py::test_it_is_the_sum_over_all_sets",
        "the sum over all sets of effects",
        "MartinWalker",
    ),
    Method(
        "DP; the needle of the companion paper",
        "the paper; Ouyang and Liang, arXiv 1702.04330",
        f"{_prior('DirichletProcess')}, {{py:func}}`ebda.paper.classifier`",
        "section 3, Algorithm 1",
        "test_dirichlet_process.py::test_algorithm_1_equals_the_authors_program",
        "the authors' program",
        "DP",
    ),
    Method(
        "Sparse DP",
        "the paper",
        '{py:class}`~ebda.EBClassifier` with `shrinkage="sparse"`',
        "section 3.3",
        "test_paper.py::test_table_7_sparse_dp_makes_two_test_errors",
        "the published errors",
        "Sparse DP",
    ),
    Method(
        "Hard Thresh DP",
        "the paper",
        '{py:class}`~ebda.EBClassifier` with `shrinkage="hard"`',
        "section 4",
        "test_paper.py::test_table_7_hard_thresh_dp_makes_two_test_errors",
        "the published errors",
        "Hard Thresh DP",
    ),
    Method(
        "hard thresholding at b_n",
        "the paper",
        "{py:func}`ebda.theory.hard_threshold`",
        "Remark 2",
        "test_theory_limits.py::test_hard_thresholding_meets_both_conditions",
        "Conditions 1 and 2",
    ),
    Method(
        "glmnet",
        "the lasso: Friedman, Hastie and Tibshirani 2010",
        _baseline("LassoLogistic"),
        "lambda.1se of cv.glmnet",
        "test_lasso.py::test_cross_validation_is_that_of_glmnet",
        "R's glmnet",
        "glmnet",
    ),
    Method(
        "Oracle of study 3",
        "the paper; Fan and Fan 2008",
        "{py:class}`ebda.paper.SupportOracle`; the tables have that of the script",
        "section 4, study 3",
        "test_paper.py::test_the_oracle_of_study_3_is_that_of_the_script",
        "the authors' script",
        "Oracle",
    ),
    Method(
        "both thresholds by a Bayes procedure",
        "the paper, an open problem",
        '{py:class}`~ebda.EBClassifier` with `covariance="sparse"`',
        "section 5",
        "test_sparse_covariance.py::test_it_is_ahead_of_fixed_thresholds",
        "fixed thresholds",
        "Sparse covariance",
    ),
    Method(
        "elliptical distributions",
        "the paper, an open problem",
        "{py:func}`ebda.theory.elliptical_error_rate`",
        "section 5",
        "test_theory.py::test_an_elliptical_error_is_that_of_drawn_samples",
        "simulation",
    ),
)
BESIDE = (
    Method(
        "shrunken centroids",
        "Tibshirani, Hastie, Narasimhan and Chu 2003",
        _baseline("ShrunkenCentroids"),
        "R's pamr",
        "test_shrunken_centroids.py::test_predictions_are_those_of_pamr",
        "R's pamr",
        "ShrunkenCentroids",
    ),
    Method(
        "shrunken centroids RDA",
        "Guo, Hastie and Tibshirani 2007, Biostatistics 8",
        _baseline("RegularizedDA", "centroids=True"),
        "R's rda",
        "test_regularized_da.py::test_shrunken_centroids_are_those_of_r",
        "R's rda",
        "RegularizedDA, centroids",
    ),
    Method(
        "shrinkage DA",
        "Ahdesmäki and Strimmer 2010, Annals of Applied Statistics 4",
        _baseline("ShrinkageDA"),
        "R's sda",
        "test_baselines.py::test_shrinkage_da_is_that_of_r",
        "R's sda",
        "ShrinkageDA",
    ),
    Method(
        "shrinkage DA of selected features",
        "Ahdesmäki and Strimmer 2010; Strimmer 2008 (fdrtool)",
        _baseline("ShrinkageDA", "max_local_fdr=0.8"),
        "R's sda.ranking: CAT scores, false nondiscovery rates",
        "test_shrinkage_da_selection.py::test_it_is_that_of_r",
        "R's sda and fdrtool",
        "ShrinkageDA, selected",
    ),
    Method(
        "MVA",
        "Oh and Park 2024, arXiv 2401.08975",
        _baseline("MeanVarianceAdaptive"),
        "priors of means and variances",
        "test_mean_variance_adaptive.py::test_weights_agree_with_a_general_solver",
        "a general solver; the design of its paper",
        "MeanVarianceAdaptive",
    ),
    Method(
        "EBClassifier",
        "this package",
        "{py:class}`~ebda.EBClassifier`",
        "[the mathematics](mathematics.md)",
        "test_classifier.py",
        "see there",
        "EBClassifier",
    ),
    Method(
        "Limit",
        "this package",
        "posterior means under the true prior, with known variances",
        "[the mathematics](mathematics.md)",
        "test_theory.py::test_expected_error_is_the_limit_measured_for_table_1",
        "theory",
        "Limit",
    ),
)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def _sources(methods: Sequence[Method]) -> list[str]:
    return _table(
        ["method", "proposed by", "here", "where", "tested against", "by"],
        (
            [m.name, m.reference, m.code, m.where, m.against, f"`{m.test}`"]
            for m in methods
        ),
    )


def means(cells: Sequence[Cell], key: str) -> dict[str, tuple[float, int] | None]:
    """Mean error over the rows of each table, and the fewest repetitions of a row.

    None where a row is missing. Of Table 7 the row of the test samples counts.
    """
    found: dict[str, tuple[float, int] | None] = {}
    for name, table in TABLES.items():
        rows = {row.label for row in table.rows} - {"training"}
        mine = [
            cell
            for cell in cells
            if (cell.table, cell.method) == (name, key) and cell.row in rows
        ]
        found[name] = None
        if len(mine) == len(rows):
            least = min(cell.repetitions for cell in mine)
            found[name] = float(np.mean([cell.error for cell in mine])), least
    return found


def _errors(cells: Sequence[Cell]) -> list[str]:
    errors = {m.name: means(cells, m.key) for m in (*NAMED, *BESIDE) if m.key}
    knows = ("Oracle of study 3", "Limit")
    lines = []
    for name, of_tables in errors.items():
        row = [name]
        for table, found in of_tables.items():
            others = [e[table] for m, e in errors.items() if m not in knows]
            enough = [e[0] for e in others if e and e[1] >= ENOUGH]
            text = "" if found is None else f"{found[0]:.4f}"
            if found is not None and name not in knows and found[1] >= ENOUGH:
                text = f"**{text}**" if found[0] <= min(enough) else text
            row.append(text)
        counts = [found[1] for found in of_tables.values() if found]
        ends = sorted({min(counts), max(counts)}) if counts else []
        lines.append([*row, " to ".join(map(str, ends))])
    titles = [f"Table {name.removeprefix('table')}" for name in TABLES]
    return _table(["method", *titles, "repetitions"], lines)


def page(cells: Sequence[Cell]) -> str:
    """The text of docs/methods.md."""
    few = [
        method.name
        for method in (*NAMED, *BESIDE)
        if method.key
        and any(
            found and found[1] < ENOUGH for found in means(cells, method.key).values()
        )
    ]
    names = ", ".join(few)
    fewer = f" With fewer than {ENOUGH} the errors say little: {names}." if few else ""
    return "\n".join(
        [
            "# Every method that the paper names\n",
            "The paper's introduction, its studies and its discussion name these "
            "methods, in the order of the text. Each is in the package, and tested "
            "against what its authors say, or do.\n",
            *_sources(NAMED),
            "\nWith them belong some that the paper does not name, or only in its "
            "source:\n",
            *_sources(BESIDE),
            "\n## Their errors in the paper's tables\n",
            "Mean over the rows of each table, and the best one with at least "
            f"{ENOUGH} repetitions bold; the oracle and the limit know what no rule "
            "can. Tables 1 to 5 are exact errors by "
            "equation 5, but those of rules that are not linear, *Dicker and Zhao's* "
            "and some of *RDA*, are of 400 new samples for each drawing, as in Table "
            "6. Table 7 is the test error of the leukemia data as they are; of their "
            "logarithms EBClassifier has 3 of 34 wrong, and not 1, on the pages for "
            "those who come [from other packages](coming-from/index.md). *Hard Thresh "
            "DP* is *IR* in Tables 1 to 5 because no atom of the prior stays at zero "
            "there, so that it leaves out no feature "
            "([why](reproduction/README.md)). The last column has "
            "the number of repetitions; the drawings of a row are the same for all "
            "methods, as far as they have as many. The columns of the paper have its "
            "settings, and all others their defaults, with penalties by five folds "
            f"where they are chosen.{fewer}\n",
            *_errors(cells),
            "\nEach row of each table is in "
            "[the reproduction](reproduction/reproduction.md). The records are made by "
            "`ebda reproduce all --methods all --reps 20 --out docs/reproduction`, "
            "which goes on where it stopped, and this page from them by "
            "`python benchmarks/methods_page.py`.\n",
        ]
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(summarise(read_runs(RECORDS))), encoding="utf-8")
    print(f"Written: {PAGE}")


if __name__ == "__main__":
    main()
