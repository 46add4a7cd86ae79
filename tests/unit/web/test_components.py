"""The template tags for tables, cards and live parts."""

import pytest
from django.template import Context, Template, TemplateSyntaxError


def rendered(source: str, **context: object) -> str:
    return Template(source).render(Context(context))


@pytest.mark.parametrize(
    "source",
    [
        '{% card "Ports" %}{% endcard %}',
        '{% card "Ports" id="ports" clas="wide" %}{% endcard %}',
        '{% fold "Ports" css="wide" %}{% endfold %}',
        '{% table rows as row clas="wide" %}{% endtable %}',
        '{% table rows as row %}{% column "Port" nummer=True %}{% endcolumn %}{% endtable %}',
        '{% livepart "ports" %}{% endlivepart %}',
        '{% livepart "ports" about="ports" evry="5s" %}{% endlivepart %}',
    ],
)
def test_a_misspelled_or_missing_parameter_is_refused(source: str) -> None:
    with pytest.raises(TemplateSyntaxError):
        rendered(source)


def test_the_part_before_the_content_is_in_the_header_of_a_card() -> None:
    card = rendered(
        '{% card title id="ports" css=css body="" %}<a>All</a>{% content %}'
        '{% card "Inner" id="inner" %}Text{% endcard %}{% endcard %}',
        title="<Ports>",
        css='wide"',
    )
    inner = (
        '<section class="card" aria-labelledby="inner"><div class="card-header">'
        '<h2 class="card-title" id="inner">Inner</h2></div>Text</section>'
    )
    assert card == (
        '<section class="card wide&quot;" aria-labelledby="ports"><div class="card-header">'
        '<h2 class="card-title" id="ports">&lt;Ports&gt;</h2><a>All</a></div>'
        f'<div class="card-body">{inner}</div></section>'
    )


def test_a_table_declares_each_column_once() -> None:
    table = rendered(
        '{% table rows as row css=css %}{% column "Port" %}{{ row }}{% endcolumn %}'
        '{% column "Speed" number=True %}1{% endcolumn %}{% endtable %}',
        rows=["<xe0>"],
        css="dense>",
    )
    assert table == (
        '<table class="table ll-table dense&gt;"><thead><tr><th scope="col">Port</th>'
        '<th scope="col" class="ll-number">Speed</th></tr></thead><tbody>'
        '<tr><th scope="row">&lt;xe0&gt;</th><td data-label="Speed" class="ll-number">1</td></tr>'
        "</tbody></table>"
    )
