"""Template tags for the parts that pages have in common: tables, cards, lists of values, and buttons."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from django import template
from django.template.base import FilterExpression, NodeList, Parser, Token, token_kwargs
from django.urls import reverse
from django.utils.crypto import get_random_string
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


def class_attribute(*names: str | None) -> SafeString:
    """Return a class attribute with these classes; "" if there are none."""
    css = " ".join(filter(None, names))
    return format_html(' class="{}"', css) if css else SafeString("")


def read_arguments(
    parser: Parser, token: Token, *known: str
) -> tuple[list[str], dict[str, FilterExpression]]:
    """Return the positional arguments of a tag as text, and its keyword arguments.

    Raises TemplateSyntaxError for a keyword that is not in ``known``.
    """
    tag, *bits = token.split_contents()
    named = [bit for bit in bits if token_kwargs([bit], parser)]
    positional, given = [bit for bit in bits if bit not in named], token_kwargs(named, parser)
    if given.keys() - {*known}:
        raise template.TemplateSyntaxError(f"{tag} takes only these keywords: {', '.join(known)}")
    return positional, given


class _Column(NamedTuple):
    """A column. ``number``: the class of columns with numbers, or "". ``css``: its cells' class attribute."""

    label: SafeString
    number: str
    css: SafeString
    content: NodeList

    def cell(self, context: Any, *, is_first: bool) -> str:
        content = self.content.render(context)
        if is_first:
            return f'<th scope="row"{self.css}>{content}</th>'
        return f'<td data-label="{self.label}"{self.css}>{content}</td>'


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
            f'<th scope="col"{class_attribute(column.number)}>{column.label}</th>' for column in columns
        )
        body = "".join(self._row(context, columns, row) for row in self.rows.resolve(context) or ())
        if not body and "empty" in given:
            none = conditional_escape(given["empty"])
            body = f'<tr><td colspan="{len(columns)}">{none}</td></tr>'
        css = class_attribute("table ll-table", given.get("css"))
        caption = format_html("<caption>{}</caption>", given["caption"]) if "caption" in given else ""
        return f"<table{css}>{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"

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
    (rows, _as, *names), named = read_arguments(parser, token, "caption", "css", "empty", "id")
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
        number = "ll-number" if given.get("number") else ""
        css = class_attribute(number, given.get("css"))
        label = conditional_escape(self.label.resolve(context))
        context["columns_of_table"].append(_Column(label, number, css, self.nodelist))
        return ""


@register.tag
def column(parser: Parser, token: Token) -> template.Node:
    """Declare a column of ``{% table %}``. Optional parameters: ``number`` (align right), ``css``."""
    (label,), named = read_arguments(parser, token, "number", "css")
    content = parser.parse(("endcolumn",))
    parser.delete_first_token()
    return _ColumnNode(parser.compile_filter(label), named, content)


# Between the header and the content of a card. It is random, so that no text of a user can contain it.
_CONTENT = get_random_string(32)


@register.simple_tag
def content() -> str:
    """Mark the end of the header of a ``{% card %}`` or ``{% fold %}``, and the beginning of its content."""
    return _CONTENT


def _parts(rendered: str, body: str | None) -> tuple[SafeString, SafeString]:
    """Return the header and the content of a card."""
    header, _mark, content = (
        mark_safe(part)  # noqa: S308 - the template engine has rendered and escaped it
        for part in rendered.rpartition(_CONTENT)
    )
    if body is not None:
        content = format_html("<div{}>{}</div>", class_attribute("card-body", body), content)
    return header, content


@register.simple_block_tag
def card(
    content: str, title: Any, *, id: str, body: str | None = None, css: str = "", anchor: str = ""
) -> SafeString:
    """Return a card with a title.

    Example: ``{% card _("Orders") id="orders" %}…{% endcard %}``. ``id`` is the HTML id of the title. With
    ``{% content %}``, the part before it is in the card's header, next to the title. Optional parameters:

    * ``body``: put the content into a body with further classes; "" for no further classes.
    * ``css``: further classes of the card.
    * ``anchor``: the HTML id of the card.
    """
    return format_html(
        '<section{css} aria-labelledby="{id}"{anchor}><div class="card-header">'
        '<h2 class="card-title" id="{id}">{title}</h2>{0}</div>{1}</section>',
        *_parts(content, body),
        css=class_attribute("card", css),
        anchor=format_html(' id="{}"', anchor) if anchor else "",
        id=id,
        title=title,
    )


@register.simple_block_tag
def fold(
    content: str, title: Any, *, id: str = "", body: str | None = None, open: bool | str = False
) -> SafeString:
    """Return a card to fold, initially unfolded if ``open``. ``id``: its HTML id. ``body``: see ``card``."""
    return format_html(
        '<details class="card ll-fold"{}{}><summary class="card-header">'
        '<h2 class="card-title">{}</h2>{}</summary>{}</details>',
        format_html(' id="{}"', id) if id else "",
        " open" if open else "",
        title,
        *_parts(content, body),
    )


@register.simple_block_tag
def pair(content: str, label: Any, css: str = "") -> SafeString:
    """Return a term and its value, for a list of pairs (``dl``)."""
    return format_html("<dt>{}</dt><dd{}>{}</dd>", label, class_attribute(css), content)


@register.simple_block_tag
def figure(content: str, label: Any, css: str = "") -> SafeString:
    """Return a term and its value in an element, for a list of facts or figures (``dl``)."""
    return format_html("<div>{}</div>", pair(content, label, css))


@register.simple_tag(takes_context=True)
def post_button(
    context: Any,
    label: Any,
    page: str,
    *arguments: Any,
    css: str = "",
    form_css: str = "",
    about: Any = "",
    **fields: str,
) -> SafeString:
    """Return a form with only a button, which posts to a page.

    ``page``: the name of the page's URL pattern, followed by its arguments. ``css``: further classes of the
    button. ``form_css``: the classes of the form. ``about``: the label for screen readers, if ``label`` alone
    is unclear. ``fields``: the name and the value of the button, such as ``do="retry"``.
    """
    return format_html(
        '<form method="post" action="{}"{}><input type="hidden" name="csrfmiddlewaretoken" value="{}">'
        '<button type="submit"{}{}{}>{}</button></form>',
        reverse(page, args=arguments),
        class_attribute(form_css),
        context["csrf_token"],
        class_attribute("btn", css),
        format_html_join("", ' name="{}" value="{}"', fields.items()),
        format_html(' aria-label="{}"', about) if about else "",
        label,
    )


@register.simple_block_tag
def capture(content: str) -> SafeString:
    """Return the content without surrounding space, for ``{% capture as name %}…{% endcapture %}``."""
    return mark_safe(content.strip())  # noqa: S308 - a template has rendered it
