"""What routers call a line where SNMP asks them: the ifAlias of its interfaces."""

import re
import unicodedata
from uuid import UUID

# As agents accept it (agent/internal/intent/decode.go), and as an ifAlias holds it (RFC 2863).
LONGEST = 64
_LONGEST_CUSTOMER = 20
# Letters that Unicode takes for no other one with a sign.
_SPELLED = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d",
     "Đ": "D", "–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "„": '"'}
)  # fmt: skip
# LibreNMS ends the customer's name at a colon or a bracket.
_MARKS = str.maketrans(dict.fromkeys("()[]{}:", " "))
# What ``_name_of`` appends: a name that already ends so gets a number as well.
_NUMBERED = re.compile(r"#[0-9]+\Z")


def line_label(vll: UUID, *, description: str, customer: str, customer_id: int) -> str:
    """Customer, description and the first digits of the line's id: printable ASCII, 64 characters at most.

    In the form that LibreNMS finds customers by (docs.librenms.org, Interface Description Parsing), such as
    ``Cust: ACME (Office to mine) {6f0b2c52}``. LibreNMS takes labels with the same name for one customer's.
    """
    label = f"Cust: {_name_of(customer, customer_id)} {{{str(vll)[:8]}}}"
    what = _plain(description)[: LONGEST - len(label) - len("() ")].strip()
    return label.replace("{", f"({what}) {{") if _says_something(what) else label


def _name_of(customer: str, customer_id: int) -> str:
    """The customer's name, the same in all labels of one customer and different between two customers.

    A name that is too long, or that ASCII cannot write, is followed by the customer's number:
    ``Transcontinental #17``, and ``Customer #17`` where no letter is left.
    """
    name = _plain(customer)
    if name == customer and len(name) <= _LONGEST_CUSTOMER and not _NUMBERED.search(name):
        return name
    number = f" #{customer_id}"
    kept = name.replace("?", " ") if "?" not in customer else name
    kept = " ".join(kept.split())[: _LONGEST_CUSTOMER - len(number)].strip()
    return (kept if _says_something(kept) else "Customer") + number


def _says_something(text: str) -> bool:
    return any(each.isalnum() for each in text)


def _plain(text: str) -> str:
    """ASCII on one line: letters lose their signs, and a question mark replaces what ASCII lacks."""
    plain = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    letters = (letter for letter in plain if not unicodedata.combining(letter))
    ascii_alone = "".join(
        letter if " " <= letter <= "~" else " " if letter.isspace() else "?" for letter in letters
    )
    return " ".join(ascii_alone.translate(_MARKS).split())
