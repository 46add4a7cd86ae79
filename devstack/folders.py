"""The folders of a clone."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What runs keeps its files here; another folder lets two demos of one clone stand side by side.
RUN = Path(os.environ.get("LONGLINE_RUN_DIR", ROOT / ".run")).absolute()
BUILD = ROOT / "build"
VENV_BIN = ROOT / ".venv" / "bin"
