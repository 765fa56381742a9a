"""Where a Python session hooks into the interpreter. `python.py` loads it, and is `driver` here."""

import _thread
import sys


def install():
    own_threads()
    sys.meta_path.insert(0, MatplotlibFinder())
    sys.meta_path.append(IPythonFinder())


def own_threads():
    """A new thread belongs to the step that starts it."""

    def owned(start):
        def start_owned(function, *rest, **options):
            step = driver.owner.get() or driver.Driver.step

            def run(*args, **kwargs):
                driver.owner.set(step)
                return function(*args, **kwargs)

            return start(run, *rest, **options)

        return start_owned

    threading = sys.modules.get("threading")
    for name in ("start_new_thread", "start_new", "start_joinable_thread"):
        start = getattr(_thread, name, None)
        if start is not None:
            setattr(_thread, name, owned(start))
            if hasattr(threading, "_" + name):
                setattr(threading, "_" + name, getattr(_thread, name))


class MatplotlibFinder:
    """Makes it draw for us. The first to be asked."""

    def find_spec(self, name, path=None, target=None):
        return driver.load("display").find_matplotlib(name, path) if name == "matplotlib" else None


class IPythonFinder:
    """Answers for `IPython.display` where there is no IPython. The last to be asked."""

    OURS = ("IPython", "IPython.display", "IPython.core", "IPython.core.display", "airlock_matplotlib")

    def find_spec(self, name, path=None, target=None):
        return driver.load("display").find_ours(name) if name in self.OURS else None
