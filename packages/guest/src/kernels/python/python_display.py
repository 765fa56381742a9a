"""What only some Python sessions need; `python.py` loads it then, and is `driver` here.

Classes for `from IPython.display import ...`, and figures of matplotlib: drawn without a screen, shown as PNG when
`show()` is called and at the end of the step, and closed.
"""

import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import PathFinder

rich = driver.load("rich")
display, add_form = rich.display, rich.add_form
BACKEND = "module://airlock_matplotlib"


class Shown:
    """Data of one media type, given as text or bytes, or read from a file."""

    FORM = "text/plain"
    BINARY = False

    def __init__(self, data=None, url=None, filename=None, **_options):
        if filename is not None:
            with open(filename, "rb" if self.BINARY else "r") as file:
                data = file.read()
        self.data = data
        self.url = url

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.FORM: self.data} if self.data is not None else {}

    def __repr__(self):
        return "<%s object>" % type(self).__name__


class HTML(Shown):
    FORM = "text/html"


class Markdown(Shown):
    FORM = "text/markdown"


class SVG(Shown):
    FORM = "image/svg+xml"


class Latex(Shown):
    FORM = "text/latex"


class Math(Latex):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.FORM: "$\\displaystyle %s$" % str(self.data).strip("$")}


class Pretty(Shown):
    pass


class Javascript(Shown):
    FORM = "application/javascript"


class JSON(Shown):
    FORM = "application/json"

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = self.data
        if isinstance(data, (str, bytes)):
            import json

            data = json.loads(data)
        return {self.FORM: data}


class Image(Shown):
    """PNG or JPEG, whatever the bytes are. A name of a file is read."""

    BINARY = True

    def __init__(self, data=None, url=None, filename=None, **options):
        if isinstance(data, str):
            data, filename = None, data
        super().__init__(data, url, filename, **options)

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.data is None:
            return {"text/html": '<img src="%s"/>' % self.url} if self.url else {}
        return {"image/jpeg" if bytes(self.data[:2]) == b"\xff\xd8" else "image/png": bytes(self.data)}


class DisplayHandle:
    def display(self, value, **options):
        display(value, **options)

    update = display


def nothing(*_args, **_options):
    return None


def find_ours(name):
    return ModuleSpec(name, Loader(), is_package=name in ("IPython", "IPython.core"))


class Loader:
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        if module.__name__ == "airlock_matplotlib":
            fill_backend(module)
            return
        classes = (HTML, Markdown, SVG, Latex, Math, Pretty, Javascript, JSON, Image, DisplayHandle)
        module.__dict__.update({found.__name__: found for found in classes})
        module.__dict__.update({"display": display, "clear_output": nothing, "update_display": display})
        module.__dict__.update({"get_ipython": nothing, "set_matplotlib_formats": nothing})
        module.__dict__.update({"display_html": display_as(HTML), "display_markdown": display_as(Markdown)})


def display_as(kind):
    def display_raw(*values, raw=False, **_options):
        display(*[kind(value) if raw else value for value in values])

    return display_raw


def find_matplotlib(name, path):
    spec = PathFinder.find_spec(name, path)
    if spec is not None and spec.loader is not None:
        spec.loader = MatplotlibLoader(spec.loader)
    return spec


class MatplotlibLoader:
    """Loads it as ever, then has it draw for us, unless the user has named another backend."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        import os

        if not os.environ.get("MPLBACKEND"):
            module.rcParams["backend"] = BACKEND


def fill_backend(module):
    from matplotlib.backends import backend_agg

    module.FigureCanvas = backend_agg.FigureCanvasAgg
    module.FigureManager = getattr(backend_agg, "FigureManager", None) or manager_base()
    for name in ("new_figure_manager", "new_figure_manager_given_figure"):
        if hasattr(backend_agg, name):
            setattr(module, name, getattr(backend_agg, name))
    module.show = show_figures


def manager_base():
    from matplotlib.backend_bases import FigureManagerBase

    return FigureManagerBase


def show_figures(*_args, **_options):
    """All that are open, which are then closed."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return
    managers = helpers.Gcf.get_all_fig_managers()
    try:
        for manager in managers:
            figure = manager.canvas.figure
            data = {"text/plain": repr(figure)}
            add_form(data, "image/png", draw(figure))
            driver.show("display", data)
    finally:
        helpers.Gcf.destroy_all()


def png_of(figure):
    """Of a figure that is the value of a step; one that is open is shown at the end anyway."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    managers = helpers.Gcf.get_all_fig_managers() if helpers is not None else []
    if any(manager.canvas.figure is figure for manager in managers):
        return None
    try:
        return draw(figure)
    except Exception:
        return None


def draw(figure):
    from io import BytesIO

    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()
