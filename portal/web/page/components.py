"""Template tags for the parts that pages have in common: tables, cards, lists of values, and buttons."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django import template
from django.template.base import FilterExpression, NodeList, Parser, Token, token_kwargs
from django.urls import reverse
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()

_NUMBER = ' class="ll-number"'


def _read_arguments(parser: Parser, token: Token) -> tuple[list[str], dict[str, FilterExpression]]:
    """Return the positional arguments of a tag as text, and its keyword arguments."""
    _name, *bits = token.split_contents()
    named = [bit for bit in bits if token_kwargs([bit], parser)]
    positional = [bit for bit in bits if bit not in named]
    return positional, token_kwargs(named, parser)


class _Column(NamedTuple):
    """A column. ``css``: the class of its cells. ``content``: the template of a cell."""

    label: Any
    is_number: bool
    css: str
    content: NodeList

    def cell(self, context: Any, *, is_first: bool) -> str:
        tag = ("th", 'scope="row"') if is_first else ("td", f'data-label="{conditional_escape(self.label)}"')
        css = " ".join(filter(None, ("ll-number" if self.is_number else "", self.css)))
        attributes = f'{tag[1]} class="{css}"' if css else tag[1]
        return f"<{tag[0]} {attributes}>{self.content.render(context)}</{tag[0]}>"


class _TableNode(template.Node):
    def __init__(
        self, rows: FilterExpression, names: list[str], named: dict[str, FilterExpression], content: NodeList
    ) -> None:
        self.rows, self.names, self.named, self.nodelist = rows, names, named, content

    def render(self, context: Any) -> str:
        columns: list[_Column] = []
        with context.push(columns_of_table=columns):
            self.nodelist.render(context)
        given = {name: value.resolve(context) for name, value in self.named.items() if name != "id"}
        heads = "".join(
            f'<th scope="col"{_NUMBER if column.is_number else ""}>{conditional_escape(column.label)}</th>'
            for column in columns
        )
        body = "".join(self._row(context, columns, row) for row in self.rows.resolve(context) or ())
        if not body and "empty" in given:
            none = conditional_escape(given["empty"])
            body = f'<tr><td colspan="{len(columns)}">{none}</td></tr>'
        css = " ".join(filter(None, ("table ll-table", given.get("css"))))
        caption = format_html("<caption>{}</caption>", given["caption"]) if "caption" in given else ""
        return f'<table class="{css}">{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'

    def _row(self, context: Any, columns: Iterable[_Column], row: Any) -> str:
        values = row if len(self.names) > 1 else (row,)
        with context.push(**dict(zip(self.names, values, strict=True))):
            row_id = self.named["id"].resolve(context) if "id" in self.named else ""
            attributes = format_html(' id="{}"', row_id) if row_id else ""
            cells = "".join(column.cell(context, is_first=not n) for n, column in enumerate(columns))
        return f"<tr{attributes}>{cells}</tr>"


@register.tag
def table(parser: Parser, token: Token) -> template.Node:
    """Render a table. Each column is declared once, with its heading and its cell.

    Example: ``{% table ports as port %}{% column _("Speed") number=True %}{{ port.speed_bps|rate
    }}{% endcolumn %}{% endtable %}``. The cells of the first column are the headings of the rows. Optional
    parameters:

    * ``caption``: its caption.
    * ``css``: further classes of the table.
    * ``empty``: the text of a table without rows.
    * ``id``: the HTML id of a row; the expression may use the row.
    """
    (rows, _as, *names), named = _read_arguments(parser, token)
    content = parser.parse(("endtable",))
    parser.delete_first_token()
    return _TableNode(parser.compile_filter(rows), [name.rstrip(",") for name in names], named, content)


class _ColumnNode(template.Node):
    def __init__(
        self, label: FilterExpression, named: dict[str, FilterExpression], content: NodeList
    ) -> None:
        self.label, self.named, self.nodelist = label, named, content

    def render(self, context: Any) -> str:
        given = {name: value.resolve(context) for name, value in self.named.items()}
        column = _Column(
            self.label.resolve(context), bool(given.get("number")), given.get("css", ""), self.nodelist
        )
        context["columns_of_table"].append(column)
        return ""


@register.tag
def column(parser: Parser, token: Token) -> template.Node:
    """Declare a column of ``{% table %}``. Optional parameters: ``number`` (align right), ``css``."""
    (label,), named = _read_arguments(parser, token)
    content = parser.parse(("endcolumn",))
    parser.delete_first_token()
    return _ColumnNode(parser.compile_filter(label), named, content)


class _CardNode(template.Node):
    child_nodelists = ("header", "nodelist")

    def __init__(
        self, title: FilterExpression, named: dict[str, FilterExpression], header: NodeList, content: NodeList
    ) -> None:
        self.title, self.named, self.header, self.nodelist = title, named, header, content

    def render(self, context: Any) -> str:
        given = {name: value.resolve(context) for name, value in self.named.items()}
        header, content = self.header.render(context), self.nodelist.render(context)
        if (body := given.get("body")) is not None:
            css = " ".join(filter(None, ("card-body", body)))
            content = format_html('<div class="{}">{}</div>', css, mark_safe(content))  # noqa: S308
        return self.html(self.title.resolve(context), given, header, content)

    def html(self, title: Any, given: dict[str, Any], header: str, content: str) -> str:
        card = conditional_escape(given["id"])
        css = " ".join(filter(None, ("card", given.get("css"))))
        return (
            f'<section class="{css}" aria-labelledby="{card}"><div class="card-header">'
            f'<h2 class="card-title" id="{card}">{conditional_escape(title)}</h2>{header}</div>'
            f"{content}</section>"
        )


class _FoldNode(_CardNode):
    def html(self, title: Any, given: dict[str, Any], header: str, content: str) -> str:
        attributes = format_html(' id="{}"', given["id"]) if "id" in given else ""
        attributes += " open" if given.get("open") else ""
        return (
            f'<details class="card ll-fold"{attributes}><summary class="card-header">'
            f'<h2 class="card-title">{conditional_escape(title)}</h2>{header}</summary>{content}</details>'
        )


def _card(parser: Parser, token: Token, kind: type[_CardNode], end: str) -> template.Node:
    (title,), named = _read_arguments(parser, token)
    header, content = NodeList(), parser.parse(("content", end))
    if parser.next_token().contents == "content":
        header, content = content, parser.parse((end,))
        parser.delete_first_token()
    return kind(parser.compile_filter(title), named, header, content)


@register.tag
def card(parser: Parser, token: Token) -> template.Node:
    """Render a card with a title.

    Example: ``{% card _("Orders") id="orders" %}…{% endcard %}``. ``id`` is the HTML id of the title. With
    ``{% content %}``, the part before it is in the card's header, next to the title. Optional parameters:

    * ``body``: put the content into a body with further classes; "" for no further classes.
    * ``css``: further classes of the card.
    """
    return _card(parser, token, _CardNode, "endcard")


@register.tag
def fold(parser: Parser, token: Token) -> template.Node:
    """Render a card that can be unfolded. It has the parameters of ``{% card %}``, and ``open``."""
    return _card(parser, token, _FoldNode, "endfold")


@register.simple_block_tag
def pair(content: str, label: Any, css: str = "") -> SafeString:
    """Return a term and its value, for a list of pairs (``dl``)."""
    attributes = format_html(' class="{}"', css) if css else ""
    return format_html("<dt>{}</dt><dd{}>{}</dd>", label, attributes, content)


@register.simple_block_tag
def figure(content: str, label: Any, css: str = "") -> SafeString:
    """Return a term and its value in an element, for a list of facts or figures (``dl``)."""
    return format_html("<div>{}</div>", pair(content, label, css))


@register.simple_tag(takes_context=True)
def post_button(
    context: Any, label: Any, page: str, *arguments: Any, css: str = "", form_css: str = "", about: Any = ""
) -> SafeString:
    """Return a form with only a button, which posts to a page.

    ``page``: the name of the page's URL pattern, followed by its arguments. ``css``: further classes of the
    button. ``about``: the label for screen readers, if ``label`` alone is unclear.
    """
    return format_html(
        '<form method="post" action="{}"{}><input type="hidden" name="csrfmiddlewaretoken" value="{}">'
        '<button type="submit" class="{}"{}>{}</button></form>',
        reverse(page, args=arguments),
        format_html(' class="{}"', form_css) if form_css else "",
        context["csrf_token"],
        f"btn {css}".strip(),
        format_html(' aria-label="{}"', about) if about else "",
        label,
    )


@register.simple_block_tag
def capture(content: str) -> SafeString:
    """Return the content without surrounding space, for ``{% capture as name %}…{% endcapture %}``."""
    return mark_safe(content.strip())  # noqa: S308 - a template has rendered it
