"""The folders of a clone."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The files of running processes. Two demos of one clone need different folders to run at the same time.
RUN = Path(os.environ.get("LONGLINE_RUN_DIR", ROOT / ".run")).absolute()
BUILD = ROOT / "build"
VENV_BIN = ROOT / ".venv" / "bin"
