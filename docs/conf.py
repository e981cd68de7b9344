"""The documentation site: Sphinx over the pages of this folder.

`python -m sphinx -W --keep-going -b html docs build/site` builds it, offline and with warnings as
errors; needs the extra `docs`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS)]
# notebooks are run in processes of their own, and import this checkout too
os.environ["PYTHONPATH"] = os.pathsep.join(
    part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part
)

import docstrings  # noqa: E402
import site_pages  # noqa: E402

import hcmodel  # noqa: E402
from hcmodel.grammar.lexer import HCLexer  # noqa: E402

project = "hcmodel"
author = "the hcmodel developers"
project_copyright = "the hcmodel developers, MIT licence"
version = release = hcmodel.__version__
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "Thumbs.db", ".DS_Store"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}

# ---- Markdown and notebooks

myst_enable_extensions = ["colon_fence", "deflist", "attrs_block", "attrs_inline"]
myst_heading_anchors = 4
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

# ---- API reference

add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
# `x` in a docstring is code, and a link where it names something public
default_role = "py:obj"
maximum_signature_line_length = 88

# ---- HTML

html_theme = "furo"
html_title = f"hcmodel {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_logo = "_static/mark.svg"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "sidebar_hide_name": False,
    "light_css_variables": {"color-brand-primary": "#00609c", "color-brand-content": "#00609c"},
    "dark_css_variables": {"color-brand-primary": "#6cb6ec", "color-brand-content": "#6cb6ec"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
# what programs print is not copied
copybutton_selector = "div:not(.highlight-text):not(.output) > div.highlight > pre"


def setup(app: Any) -> None:
    site_pages.write()  # before Sphinx looks for pages
    app.add_lexer("hc", HCLexer)
    app.connect("autodoc-process-docstring", docstrings.process)
    app.connect("autodoc-process-signature", docstrings.signature)
