"""Labels of lines on routers. SNMP reports the label as the ifAlias of a line's interfaces."""

import re
import unicodedata
from uuid import UUID

# The limit of agents (agent/internal/intent/decode.go) and of an ifAlias (RFC 2863).
LONGEST = 64
_LONGEST_CUSTOMER = 20
# Letters that Unicode does not decompose into a base letter and a mark.
_SPELLED = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d",
     "Đ": "D", "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "„": '"'}
)  # fmt: skip
# Characters that are replaced in names, because LibreNMS ends the customer's name at a colon or a bracket.
_MARKS = str.maketrans(dict.fromkeys("()[]{}:", " "))
# The suffix that ``_name_of`` appends. A name that already ends like this gets a suffix too.
_NUMBERED = re.compile(r"#[0-9]+\Z")


def line_label(vll: UUID, *, description: str, customer: str, customer_id: int) -> str:
    """Return the label: customer, description and the first 8 digits of the line's id.

    The label has at most 64 printable ASCII characters, such as ``Cust: ACME (Office to mine) {6f0b2c52}``.
    LibreNMS recognises this form (docs.librenms.org, Interface Description Parsing). It groups lines by the
    customer's name.
    """
    label = f"Cust: {_name_of(customer, customer_id)} {{{str(vll)[:8]}}}"
    what = _plain(description)[: LONGEST - len(label) - len("() ")].strip()
    return label.replace("{", f"({what}) {{") if _has_letters(what) else label


def _name_of(customer: str, customer_id: int) -> str:
    """Return the customer's name for labels: the same in all labels of a customer, and unique per customer.

    If the name is too long or is not plain ASCII, it is shortened, and the customer's id follows:
    ``Transcontinental #17``. If no letter or digit remains, the result is ``Customer #17``.
    """
    name = _plain(customer)
    if name == customer and len(name) <= _LONGEST_CUSTOMER and not _NUMBERED.search(name):
        return name
    number = f" #{customer_id}"
    kept = name.replace("?", " ") if "?" not in customer else name
    kept = " ".join(kept.split())[: _LONGEST_CUSTOMER - len(number)].strip()
    return (kept if _has_letters(kept) else "Customer") + number


def _has_letters(text: str) -> bool:
    return any(each.isalnum() for each in text)


def _plain(text: str) -> str:
    """Return the text as one line of ASCII.

    Letters lose their accents. A question mark replaces each character that ASCII cannot express.
    """
    plain = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    letters = (letter for letter in plain if not unicodedata.combining(letter))
    ascii_alone = "".join(
        letter if " " <= letter <= "~" else " " if letter.isspace() else "?" for letter in letters
    )
    return " ".join(ascii_alone.translate(_MARKS).split())
