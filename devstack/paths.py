"""Where things are in a clone."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / ".run"
BUILD = ROOT / "build"
VENV_BIN = ROOT / ".venv" / "bin"
