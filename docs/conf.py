"""Sphinx configuration: ``make docs``.

Nothing is fetched while the site is built or read: MathJax comes from a package, and
there are no links to the inventories of other projects.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

from docutils import nodes

HERE = Path(__file__).parent
# Pages with commands find the `ebda` of the Python that builds them, and numerical
# libraries do not fight for the cores of a small machine.
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The kernels that run the pages have settings of their own, not those of whoever
# builds them: sharp pictures, and no word about the local connection.
PROFILE = HERE / "_build" / "ipython" / "profile_default"
PROFILE.mkdir(parents=True, exist_ok=True)
(PROFILE / "ipython_kernel_config.py").write_text(
    "c.IPKernelApp.log_level = 40\n"
    "c.InlineBackend.figure_formats = {'retina'}\n"
    "c.InteractiveShell.history_length = 0\n"
)
os.environ["IPYTHONDIR"] = str(PROFILE.parent)

# Where a page may leave a file that the site links to.
PAGES = HERE / "_build" / "pages"
PAGES.mkdir(parents=True, exist_ok=True)
os.environ["EBDA_DOCS_PAGES"] = str(PAGES)

project = "ebda"
author = "The ebda developers"
release = version = installed("ebda")
project_copyright = author

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
]
# The first is what the reference is generated as.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

# Pages: every cell runs at every build, in a folder of its own. A cell that fails, or
# that writes to standard error (a warning), is a warning of Sphinx: with -W it fails
# the build.
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_show_tb = True
nb_execution_in_temp = True
nb_output_stderr = "warn"
nb_merge_streams = True
nb_render_markdown_format = "myst"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# The API reference: numpydoc docstrings, types in the docstrings and not twice.
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# What scikit-learn gives to every estimator is described there.
autodoc_default_options = {
    "exclude-members": "fit_transform, get_metadata_routing, set_output, "
    "set_fit_request, set_partial_fit_request, set_predict_request, set_score_request, "
    "set_predict_proba_request, set_predict_log_proba_request, set_transform_request, "
    "set_decision_function_request"
}
autoclass_content = "class"
numpydoc_show_class_members = False
add_module_names = False
default_role = "py:obj"
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "ebda"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1a5276",
        "color-brand-content": "#1a5276",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7fb3d5",
        "color-brand-content": "#7fb3d5",
    },
}
highlight_language = "none"
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_exclude = ".linenos, .gp, .go"


def literal_formulas(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Formulas in docstrings are indented text; show them as they are written.

    As reStructuredText they would be quotations, and the star of ``eta*`` the
    beginning of an emphasis.
    """
    shown, literal, above = [], False, ""
    for line in lines:
        indented = line.startswith("    ")
        if line.strip() and not indented:
            literal = False
        elif indented and not literal and _opens_formula(shown, above):
            shown += ["::", ""]
            literal = True
        shown.append(line)
        if line.strip() and not indented:
            above = line.strip()
    lines[:] = shown


def _opens_formula(shown: list[str], above: str) -> bool:
    """Whether indented text after a blank line and a paragraph is a formula."""
    after_blank = bool(shown) and not shown[-1].strip()
    listed = above.startswith(("- ", "* ", ".. ", ">>>")) or above.endswith("::")
    return after_blank and not listed and set(above) != {"-"} and bool(above)


def plain_commands(app: Any, doctree: nodes.document) -> None:
    """Show commands as one types them, without the word that makes a cell run them."""
    for block in doctree.findall(nodes.literal_block):
        first, _, rest = block.astext().partition("\n")
        if first == "%%console":
            text = nodes.Text(rest)
            block.rawsource = rest
            block.children = [text]
            text.parent = block
            block["language"] = "bash"


def tutorial_report(app: Any, error: Exception | None) -> None:
    """The report that the tutorial has written, beside the site that links to it."""
    page = PAGES / "golub-report.html"
    # Where it is not there the tutorial has failed, and said so.
    if error is None and app.builder.format == "html" and page.exists():
        shutil.copy(page, app.outdir)


def setup(app: Any) -> None:
    """Connect what is above."""
    # Before numpydoc, which runs at 500 and makes other indented text.
    app.connect("autodoc-process-docstring", literal_formulas, priority=400)
    app.connect("doctree-read", plain_commands)
    app.connect("build-finished", tutorial_report)
