# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings for the site that tools/make_site.py builds."""

import pathlib
import re

_BUILD = pathlib.Path(__file__).resolve().parents[2] / "CMakeLists.txt"

project = "Gemmery"
version = release = re.search(r"project\(gemmery VERSION ([0-9.]+)", _BUILD.read_text())[1]
copyright = "The Gemmery authors, Apache-2.0"
html_title = f"Gemmery {version}"
root_doc = "README"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence"]
highlight_language = "text"

html_theme = "furo"
html_copy_source = False  # tools/make_site.py puts each page's Markdown beside its HTML
html_show_sphinx = False
html_use_index = False
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(pathlib.Path(__file__).with_name("scorer.js"))
html_theme_options = {"top_of_page_buttons": ["view"]}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
