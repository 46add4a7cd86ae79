"""The descendants of a process, even if they are in other sessions and process groups."""

from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Return the pids of the children of a process, of their children, and so on, at this moment."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found: list[int] = []
    left = [pid]
    while left:
        found += (more := children.get(left.pop(), []))
        left += more
    return found
