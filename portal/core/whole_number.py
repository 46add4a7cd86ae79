"""Reading a whole number from input."""


def whole_number(text: str, *, most: int) -> int | None:
    """Return the number that ASCII digits write; None for any other text and for a number above ``most``.

    Python's ``int`` raises ValueError for a text of more than 4,300 digits, even of zeros. ``isdigit``
    accepts digits such as ², which ``int`` refuses.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(most)):
        return None
    number = int(digits)
    return number if number <= most else None
