"""A hook of mkdocs: what the site has besides docs/, and links that leave it.

CHANGELOG.md and SECURITY.md become pages. Other links to files outside of docs/ lead to the
repository, or are the file's name where `repo_url` is not set. Lists are written as GitHub reads
them; Python-Markdown wants an empty line before one, and four spaces before what belongs to its
items. What is still shown as it was written is a warning: an error with `--strict`.
"""

from __future__ import annotations

import logging
import os.path
import re
from html import unescape
from typing import Any

from mkdocs.structure.files import File, Files

LOG = logging.getLogger("mkdocs.hooks.site_pages")
PAGES = {"CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
ITEM = re.compile(r"- |\d\d?\. ")
CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Take the pages that lie outside of docs/."""
    root = os.path.dirname(config.config_file_path)
    for path, name in PAGES.items():
        files.append(File.generated(config, name, abs_src_path=os.path.join(root, path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links, which are those of files in the repository, into the site's."""
    homes = {name: path for path, name in PAGES.items()}
    here = homes.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    parts, end = [], 0
    for block in CODE.finditer(markdown):
        parts += [linked(markdown[end : block.start()], here, page, config), block.group()]
        end = block.end()
    return with_lists("".join([*parts, linked(markdown[end:], here, page, config)]))


def with_lists(text: str) -> str:
    """Write lists as Python-Markdown reads them."""
    lines: list[str] = []
    width = 0  # of the item's mark: what belongs to it is indented by as much, or more
    shift = 0  # of the code that is open
    fenced = has_paragraphs = False
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        is_fence = line.lstrip(" ").startswith("```")
        if not fenced:
            mark = ITEM.match(line)
            before = lines[-1] if lines else ""
            if mark and not width:
                width = len(mark.group())
                if before.strip():
                    lines.append("")
            elif mark:
                width = len(mark.group())
                if has_paragraphs and before.strip():
                    lines.append("")
            elif line.strip() and not indent and not before.strip():
                width = 0
            has_paragraphs = bool(width) and not mark and (has_paragraphs or not line.strip())
            shift = indent // width * 4 - indent // width * width if width else 0
        lines.append(" " * shift + line if line.strip() else line)
        fenced ^= is_fence
    return "\n".join(lines) + "\n"


def linked(text: str, here: str, page: Any, config: Any) -> str:
    def replace(match: re.Match[str]) -> str:
        mark, label, target, anchor = match.groups()
        path = os.path.normpath(os.path.join(os.path.dirname(here), target))
        inside = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else "")
        if inside in ("", "docs") or inside.endswith("/"):
            return in_repository(label, path, anchor or "", config)
        if os.path.isdir(os.path.join(config.docs_dir, inside)):
            inside += "/README.md"
            if not os.path.exists(os.path.join(config.docs_dir, inside)):
                return in_repository(label, path, anchor or "", config)
        relative = os.path.relpath(inside, os.path.dirname(page.file.src_uri) or ".")
        return f"{mark}[{label}]({relative}{anchor or ''})"

    return LINK.sub(replace, text)


def in_repository(label: str, path: str, anchor: str, config: Any) -> str:
    if config.repo_url:
        return f"[{label}]({config.repo_url.rstrip('/')}/blob/main/{path}{anchor})"
    return label if path in label else f"{label} (`{path}`)"


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Look for Markdown that was left as it is."""
    text = re.sub(r"<(pre|code)\b.*?</\1>", "", html, flags=re.DOTALL)
    for paragraph in re.findall(r"<p>(.*?)</p>", text, flags=re.DOTALL):
        if re.search(r"^\s*(- |\d+\. |\|.*\|$|#+ )|```", paragraph, flags=re.MULTILINE):
            start = unescape(paragraph.strip())[:70].replace("\n", " / ")
            LOG.warning("%s: shown as a paragraph: %s", page.file.src_uri, start)
    return html
