"""Check the prose of the repository with Vale: `python -m scripts.prose [FILE ...]`. By default, check all
files.

Vale reads Markdown. This program therefore writes comments, docstrings, identifiers and the texts of pages to
Markdown files in build/prose. Each text has the same line number as in its source. Vale can also read source
files directly, but then it recognizes neither sentences nor identifiers.
"""

import ast
import io
import re
import shutil
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "prose"
VALE = ROOT / "build" / "vale"
RULES = ROOT / "tools" / "vale"

# Comments that are directives for a tool.
_DIRECTIVE = re.compile(r"noqa|type:|mypy:|ruff:|fmt:|pragma|nolint|go:|!/|\+build|Code generated")
_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]")
# The places where Go declares a name: functions, types, constants, variables, and fields of a struct.
_GO_DECLARED = re.compile(
    r"^func (?:\([^)]*\) )?(?P<function>\w+)|^\s*(?:type|const|var) (?P<kind>\w+)"
    r"|^\s*(?:if |for |switch )?(?P<left>[\w, ]+?) :="
    r"|^\t(?P<field>\w+(?:, \w+)*) +[\w\[\]*.]+(?: `.*| //.*)?$"
)
_PLACEHOLDER = re.compile(r"%\(\w+\)s|\{\w+\}")
_MSGID = re.compile(r'^(msgid|msgid_plural|msgctxt|msgstr(?:\[\d\])?)?\s*"(.*)"$')

Lines = dict[int, str]


def python_prose(source: str) -> Lines:
    """Return the identifiers, comments and docstrings of a Python file, by line number."""
    lines: Lines = {}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                _declare(lines, node.lineno, node.name)
            case ast.arg():
                _declare(lines, node.lineno, node.arg)
            case ast.Name(ctx=ast.Store()):
                _declare(lines, node.lineno, node.id)
            case ast.Attribute(ctx=ast.Store()):
                _declare(lines, node.lineno, node.attr)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not _DIRECTIVE.match(token.string.lstrip("# ")):
            code = lines.get(token.start[0])
            comment = token.string.lstrip("# ")
            lines[token.start[0]] = comment if code is None else f"{code} {comment}"
    for node in ast.walk(tree):
        match getattr(node, "body", None):
            case [ast.Expr(value=ast.Constant(value=str(text)), lineno=first), *_]:
                lines |= enumerate(text.splitlines(), start=first)
    return lines


def go_prose(source: str) -> Lines:
    """Return the identifiers and comments of a Go file, by line number."""
    lines: Lines = {}
    for number, line in enumerate(source.splitlines(), start=1):
        code, found, comment = line.partition("// ")
        # URLs and strings contain // too.
        in_string = code.count('"') % 2 == 1 or "`" in code or not (code + " ")[-1].isspace()
        if found and not in_string and not code.strip():
            if not _DIRECTIVE.match(comment):
                lines[number] = comment
            continue
        if declared := _GO_DECLARED.match(line):
            for name in re.findall(r"\w+", next(filter(None, declared.groups()))):
                _declare(lines, number, name)
        if found and not in_string and not _DIRECTIVE.match(comment):
            lines[number] = f"{lines.get(number, '#')} {comment}"
    return lines


def messages_prose(source: str) -> Lines:
    """Return the texts of pages and mails of a file of translations (gettext PO), by line number."""
    lines: Lines = {}
    keyword = ""
    for number, line in enumerate(source.splitlines(), start=1):
        if not (text := _MSGID.match(line)):
            continue
        keyword = text[1] or keyword
        if keyword.startswith("msgid") and text[2]:
            lines[number] = _PLACEHOLDER.sub("x", text[2]).replace(r"\n", " ").replace(r"\"", '"')
    return lines


READERS = {".py": python_prose, ".go": go_prose, ".po": messages_prose}


def _declare(lines: Lines, number: int, name: str) -> None:
    """Add the words of an identifier to the text of its line. They form a heading, not a part of
    a sentence.
    """
    words = " ".join(_WORD.findall(name)).lower()
    lines[number] = f"{lines.get(number, '#')} {words}."


def markdown_of(lines: Lines) -> str:
    """Return Markdown in which each text is on the line that has the number of the text."""
    written = [""] * max(lines, default=0)
    for number, text in lines.items():
        # Remove the indentation, because indented text is a code block in Markdown.
        written[number - 1] = text.strip()
    return "\n".join(written) + "\n"


def files_chosen(names: list[str]) -> Iterator[str]:
    """Yield the paths of the files to check, relative to the root of the repository. Migrations
    are left out.
    """
    command = ["git", "ls-files", "--", *names]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.splitlines():
        path = Path(name)
        if not (ROOT / name).is_file():
            continue
        if path.suffix == ".md" or (path.suffix in READERS and "/migrations/" not in name):
            yield name


def main(names: list[str]) -> int:
    shutil.rmtree(BUILD, ignore_errors=True)
    for name in files_chosen(names):
        source = (ROOT / name).read_text()
        reader = READERS.get(Path(name).suffix)
        target = BUILD / (name if reader is None else f"{name}.md")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source if reader is None else markdown_of(reader(source)))
    if not BUILD.exists():
        return 0
    command = [str(VALE), "--config", str(RULES / "vale.ini"), "--output=line", "."]
    found = subprocess.run(command, cwd=BUILD, check=False, capture_output=True, text=True)
    print(re.sub(r"^(\S+\.(?:py|go|po))\.md:", r"\1:", found.stdout, flags=re.MULTILINE), end="")
    print(found.stderr, end="", file=sys.stderr)
    return found.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
