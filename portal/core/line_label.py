"""What routers call a line where SNMP asks them: the ifAlias of its interfaces."""

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
# They would begin or end what the form below puts into them.
_BRACKETS = str.maketrans(dict.fromkeys("()[]{}", " "))


def line_label(vll: UUID, *, description: str, customer: str) -> str:
    """Customer, description and the first digits of the line's id: printable ASCII, 64 characters at most.

    In the form that LibreNMS finds customers by (docs.librenms.org, Interface Description Parsing), such as
    ``Cust: ACME (Office to mine) {6f0b2c52}``.
    """
    whose = _plain(customer)[:_LONGEST_CUSTOMER].strip()
    label = f"Cust: {whose} {{{str(vll)[:8]}}}"
    what = _plain(description)[: LONGEST - len(label) - len("() ")].strip()
    return label.replace("{", f"({what}) {{") if what else label


def _plain(text: str) -> str:
    """ASCII on one line: letters lose their signs, and a question mark stands for what has no like."""
    plain = unicodedata.normalize("NFKD", text.translate(_SPELLED))
    letters = (letter for letter in plain if not unicodedata.combining(letter))
    ascii_alone = "".join(
        letter if " " <= letter <= "~" else " " if letter.isspace() else "?" for letter in letters
    )
    return " ".join(ascii_alone.translate(_BRACKETS).split())
