"""Django's ``makemessages`` with the options of this repository (``make messages``).

It updates all languages of the portal, and reads the sources that contain texts for people. The output
changes only if texts change.
"""

import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.core.management.commands import makemessages

# Commands for developers are in English only.
_IGNORED = ["agent/*", "bench/*", "build/*", "devstack/*", "scripts/*", "tests/*"]
_WHEN = re.compile(r'^"POT?-(?:Creation|Revision)-Date: .*\n', re.MULTILINE)


class Command(makemessages.Command):
    """Extract messages with the names of their files, but without line numbers.

    File names help translators. Line numbers would change with every commit.
    """

    # Without fuzzy matches, a reworded text has no translation until somebody translates it.
    msgmerge_options = [*makemessages.Command.msgmerge_options, "--sort-output", "--no-fuzzy-matching"]
    msgattrib_options = [*makemessages.Command.msgattrib_options, "--sort-output"]

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(
            locale=[code for code, _ in settings.LANGUAGES if code != settings.LANGUAGE_CODE],
            ignore_patterns=_IGNORED,
            add_location="file",
            no_wrap=True,
            no_obsolete=True,
        )

    def write_po_file(self, potfile: str, locale: str) -> None:
        """Write the file without the times in its header, which would change at every run."""
        super().write_po_file(potfile, locale)
        for catalogue in Path(potfile).parent.glob(f"{locale}/LC_MESSAGES/{self.domain}.po"):
            catalogue.write_text(_WHEN.sub("", catalogue.read_text(encoding="utf-8")), encoding="utf-8")

    def handle(self, *args: Any, **options: Any) -> None:
        # Pass a copy, because Django appends its own patterns to the list.
        super().handle(*args, **options | {"ignore_patterns": [*options["ignore_patterns"]]})
