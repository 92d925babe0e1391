"""How far jobs are, in a notebook or in a terminal."""

from __future__ import annotations

import html
import sys


def show(futures) -> None:
    """Shows a line about the jobs, again whenever it has changed, until all have ended."""
    line = _notebook() or _Terminal()
    shown = None
    over = False
    try:
        while not over:
            futures.changed.clear()
            over = futures.done()
            text = futures.summary()
            if text != shown:
                counts = futures.counts()
                line.show(text, counts["done"] + counts["failed"] + counts["cancelled"], len(futures))
                shown = text
            over or futures.changed.wait(1)
    finally:
        line.end()  # also of Ctrl-C


class _Terminal:
    """One line that is rewritten; where that cannot be, a line for each change."""

    def show(self, text: str, done: int, of: int) -> None:
        live = sys.stderr.isatty()
        print("\r\x1b[K" + text if live else text, end="" if live else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        if sys.stderr.isatty():
            print(file=sys.stderr)


class _Notebook:
    """A bar in the output of a cell."""

    def __init__(self, display):
        self.display, self.handle = display, None

    def show(self, text: str, done: int, of: int) -> None:
        words = html.escape(text)
        bar = {"text/plain": text, "text/html": f'<progress value="{done}" max="{of}"></progress> {words}'}
        if self.handle is None:
            self.handle = self.display(bar, raw=True, display_id=True)
        else:
            self.handle.update(bar, raw=True)

    def end(self) -> None:
        pass


def _notebook() -> _Notebook | None:
    if "IPython" not in sys.modules:
        return None
    import IPython
    from IPython.display import display

    return _Notebook(display) if hasattr(IPython.get_ipython(), "kernel") else None
