"""Classic pcap files (libpcap's pcap-savefile(5)), which VPP's packet generator reads and writes."""

import struct
from pathlib import Path

_MAGIC = 0xA1B2C3D4
_FILE = struct.Struct("=IHHiIII")
_RECORD = struct.Struct("=IIII")
_ETHERNET = 1


def write(path: Path, frames: list[bytes]) -> None:
    with path.open("wb") as file:
        file.write(_FILE.pack(_MAGIC, 2, 4, 0, 0, 65535, _ETHERNET))
        for each in frames:
            file.write(_RECORD.pack(0, 0, len(each), len(each)) + each)


def read(path: Path) -> list[bytes]:
    """Return the complete frames of a file that may still grow."""
    content = path.read_bytes() if path.exists() else b""
    frames, at = [], _FILE.size
    while at + _RECORD.size <= len(content):
        _, _, kept, _ = _RECORD.unpack_from(content, at)
        at += _RECORD.size
        if at + kept > len(content):
            break
        frames.append(content[at : at + kept])
        at += kept
    return frames
