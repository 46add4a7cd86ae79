"""Labels of lines on routers: the ifAlias that SNMP reports for the interfaces of a line."""

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
# LibreNMS ends the customer's name at a colon or a bracket.
_MARKS = str.maketrans(dict.fromkeys("()[]{}:", " "))
# The suffix that ``_name_of`` appends. A name that already ends like this gets a number as well.
_NUMBERED = re.compile(r"#[0-9]+\Z")


def line_label(vll: UUID, *, description: str, customer: str, customer_id: int) -> str:
    """Return customer, description and the first digits of the line's id as at most 64 printable ASCII
    characters.

    LibreNMS finds customers by this form (docs.librenms.org, Interface Description Parsing): ``Cust: ACME
    (Office to mine) {6f0b2c52}``. LibreNMS assigns labels with the same name to one customer.
    """
    label = f"Cust: {_name_of(customer, customer_id)} {{{str(vll)[:8]}}}"
    what = _plain(description)[: LONGEST - len(label) - len("() ")].strip()
    return label.replace("{", f"({what}) {{") if _has_letters(what) else label


def _name_of(customer: str, customer_id: int) -> str:
    """Return the customer's name: the same in all labels of a customer, and different for two customers.

    The customer's number follows a name that is too long or that ASCII cannot write: ``Transcontinental
    #17``, or ``Customer #17`` if no letter is left.
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
    """Return one line of ASCII: letters lose their marks, and a question mark replaces other characters."""
    plain = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    letters = (letter for letter in plain if not unicodedata.combining(letter))
    ascii_alone = "".join(
        letter if " " <= letter <= "~" else " " if letter.isspace() else "?" for letter in letters
    )
    return " ".join(ascii_alone.translate(_MARKS).split())
