#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the notebooks of tutorials/ from the scripts there, runs them and keeps their output.

    tools/make_notebooks.py [tutorials/01_first_gemm.py ...]

Needs nbformat, nbclient and ipykernel (`pip install gemmery[dev]`) and a package that can be imported. A script consists of cells:
`# %%` begins one of code, `# %% [markdown]` one of text, whose lines are comments.
"""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "tutorials"


def cells(script: str) -> list[tuple[str, str]]:
    """("markdown" or "code", its text) in their order."""
    found = []
    for part in script.split("\n# %%")[1:]:
        title, _, body = part.partition("\n")
        if "[markdown]" in title:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()]
            found.append(("markdown", "\n".join(lines)))
        else:
            found.append(("code", body.strip()))
    return found


def make(path: pathlib.Path) -> None:
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook()
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for number, (kind, text) in enumerate(cells(path.read_text())):
        cell = (nbformat.v4.new_markdown_cell if kind == "markdown" else nbformat.v4.new_code_cell)(text)
        cell.id = f"cell-{number}"
        notebook.cells.append(cell)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata = {}
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, path.with_suffix(".ipynb"))
    print(path.with_suffix(".ipynb").name)


def main(arguments: list[str]) -> None:
    for path in [pathlib.Path(argument) for argument in arguments] or sorted(FOLDER.glob("*.py")):
        make(path)


if __name__ == "__main__":
    main(sys.argv[1:])
