"""A template tag for drawings of routers and links."""

from django import template

from portal.web.svg_markup import drawing_markup

register = template.Library()
register.simple_tag(drawing_markup)
