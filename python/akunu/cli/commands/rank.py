"""`akunu rank`: documents by how well they answer a query."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from akunu.cli.commands.embed import texts_of, truncation_as_option
from akunu.cli.loading import load_model
from akunu.cli.terminal.progress import counted
from akunu.cli.text_input import as_unicode
from akunu.options.text_options import LoadOptions


def show_ranking(
    model_name: str,
    query: str,
    given: list[str],
    path: Path | None,
    load: LoadOptions,
    *,
    json_lines: bool,
    arguments: dict[str, Any],
) -> int:
    """Write a line of JSON for each document to stdout, the best first.

    `arguments`: of `Model.rank`.
    """
    query = as_unicode(query, "the query")
    documents = texts_of(given, path, json_lines=json_lines, command="rank")
    with (
        load_model(model_name, load) as model,
        counted("ranking", len(documents), "documents") as count,
        truncation_as_option(),
    ):
        ranked = model.rank(query, documents, progress=count, **arguments)
    for each in ranked:
        line = {"index": each.index, "score": each.score, "document": each.document}
        json.dump(line, sys.stdout, ensure_ascii=False)
        print()
    return 0
