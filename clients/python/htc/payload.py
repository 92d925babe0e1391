"""What a function and its items are sent as."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
import zlib
from importlib import resources

from .errors import Error

FUNCTION = "htc-function"  # the inputs' names
PICKLER = "cloudpickle.zip"
RESULT = "_htc_result.pickle"  # what a job leaves


def source() -> str:
    """Returns the script that calls the function."""
    return resources.files(__package__).joinpath("runner.py").read_text(encoding="utf-8")


def pack(function, items: list | None) -> dict[str, bytes]:
    """Returns the files that a job needs to call the function with the item of its number."""
    try:
        import cloudpickle
    except ImportError:
        cloudpickle = None
    if cloudpickle is None and _local(function):
        raise Error(
            f"{_name(function)} is defined in the notebook, or in a function, and only cloudpickle can send such: "
            "pip install cloudpickle (Debian's python3-cloudpickle), or put it into a module, and send its file, too: "
            "files=['module.py']"
        )
    dumps = (cloudpickle or pickle).dumps
    content = {
        "python": list(sys.version_info[:2]) if cloudpickle else None,
        "function": _dump(dumps, function, _name(function)),
        "items": items and [_dump(dumps, item, f"items[{i}]") for i, item in enumerate(items)],
    }
    files = {FUNCTION: zlib.compress(pickle.dumps(content, protocol=4))}
    if cloudpickle:
        files[PICKLER] = _zipped(cloudpickle)
    return files


def _dump(dumps, what, name: str) -> bytes:
    try:
        return dumps(what)
    except Exception as e:  # whatever an object's own __reduce__ raises
        raise Error(f"{name} cannot be sent to a job, as it cannot be pickled: {type(e).__name__}: {e}") from e


def _name(function) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _local(function) -> bool:
    return getattr(function, "__module__", None) == "__main__" or "<" in getattr(function, "__qualname__", "")


def _zipped(package) -> bytes:
    """Returns a package of Python files as a zip file from which it can be imported: images rarely have it."""
    directory = os.path.dirname(package.__file__)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as z:
        for name in sorted(os.listdir(directory)):
            if name.endswith(".py"):
                z.write(os.path.join(directory, name), f"{package.__name__}/{name}")
    return out.getvalue()
