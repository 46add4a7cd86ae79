"""The numbers of PostgreSQL's advisory locks that have a fixed number.

The numbers are arbitrary, but two locks with the same number would wait for each other. The previous
release uses these numbers while it runs next to this one, so the number of a lock changes only if both
releases may do the locked work at the same time.
"""

from enum import IntEnum, unique


@unique
class AdvisoryLock(IntEnum):
    """The key of ``pg_advisory_lock(key)``, or the first key of ``pg_advisory_lock(key, key)``."""

    UPGRADE = 0x4C4F4E47
    PARTITIONS = 7_305_001
    ROLL_UPS = 7_305_002
    STORED_SAMPLES = 7_305_003
    LOSS_ROLL_UPS = 7_305_004
    MONTHS = 7_305_005
    MAILS = 7_305_011
    IMPORTS = 7_305_012
