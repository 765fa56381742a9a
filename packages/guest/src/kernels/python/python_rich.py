"""How a Python session shows an object: in every form that it has. `python.py` loads it, and is `driver` here."""

import binascii

TEXT_CHARS = 256 * 1024

FORMS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_latex_", "text/latex"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_json_", "application/json"),
)


def display(*objects, raw=False, **_options):
    """Shows each object in all the forms that it has; `raw` takes bundles by media type as they are."""
    for value in objects:
        driver.show("display", plain(value) if raw else bundle(value))


def bundle(value):
    data = {"text/plain": text_of(value)}
    kind = type(value)
    if isinstance(value, type):
        return data
    for name, form in FORMS:
        add_form(data, form, call(kind, name, value))
    found = call(kind, "_repr_mimebundle_", value)
    found = found[0] if isinstance(found, tuple) and found else found
    if isinstance(found, dict):
        data.update(plain(found))
    if "image/png" not in data and str(kind.__module__).startswith("matplotlib.figure"):
        add_form(data, "image/png", driver.load("display").png_of(value))
    return data


def call(kind, name, value):
    """Looked up on the class: what answers to any name is not asked."""
    method = getattr(kind, name, None)
    if method is None:
        return None
    try:
        found = method(value, None, None) if name == "_repr_mimebundle_" else method(value)
    except Exception:
        return None
    return found[0] if name != "_repr_mimebundle_" and isinstance(found, tuple) and found else found


def plain(found):
    data = {}
    for form, value in found.items():
        add_form(data, str(form)[:128], value)
    return data


def add_form(data, form, value):
    """Only what can be written as JSON."""
    if value is None:
        return
    if isinstance(value, (bytes, bytearray)):
        value = binascii.b2a_base64(value, newline=False).decode("ascii")
    try:
        driver.encode_json({form: value})
    except Exception:
        return
    data[form] = value


def text_of(value):
    try:
        text = repr(value)
    except Exception as error:
        text = "<%s whose repr() raised %s>" % (type(value).__name__, type(error).__name__)
    if len(text) > TEXT_CHARS:
        text = text[:TEXT_CHARS] + "... [%d characters]" % len(text)
    return str(text)
