"""Error messages for numbers, rates and sizes that cannot be read."""

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.core import quantities
from portal.core.errors import TEXTS, wording

TEXTS |= {
    quantities.NumberUnreadable: gettext_noop("“{value}” is not a number. Enter digits, such as 100 or 2.5."),
    quantities.RateUnreadable: gettext_noop(
        "“{value}” is not a rate. Enter a number such as 100, or a number with its unit, such as 50M,"
        " 50 Mbps or 1.5 Gbit/s. The rate is at least 0 and has no fraction of a bit."
    ),
    quantities.SizeUnreadable: gettext_noop(
        "“{value}” is not a size. Enter a whole number of bytes such as 9000, or a number with its unit, such"
        " as 64 kB or 64 KiB."
    ),
}


@wording.register
def _ambiguous(error: quantities.QuantityAmbiguous) -> str:
    first, second = error.readings
    text = _("“{value}” can be read in two ways. Enter {first} or {second}.")
    return text.format(value=error.value, first=first, second=second)
