"""The fixed numbers of the portal's advisory locks in PostgreSQL.

The numbers are arbitrary, but two locks with the same number would wait for each other. The previous release
uses these numbers while it runs next to this release. Change the number of a lock only if both releases may
do the locked work at the same time.
"""

from enum import IntEnum, unique


@unique
class AdvisoryLock(IntEnum):
    """The key of ``pg_advisory_lock(key)``, or the first key of ``pg_advisory_lock(key, key)``."""

    UPGRADE = 0x4C4F4E47
    PARTITIONS = 7_305_001
    # Only one process at a time may roll up lines (ROLL_UPS) or losses (LOSS_ROLL_UPS). Otherwise a slower
    # process could overwrite newer results with older ones.
    ROLL_UPS = 7_305_002
    # The second key is the number of a 5-minute bucket, counted from the epoch. A process that stores samples
    # of the bucket shares the lock until it commits.
    STORED_SAMPLES = 7_305_003
    LOSS_ROLL_UPS = 7_305_004
    # Without this lock, two processes could both create a mail for the same reader, kind and cause.
    MAILS = 7_305_011
    IMPORTS = 7_305_012
