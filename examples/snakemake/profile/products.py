"""Which HTCJob has made a file, kept in .snakemake/htcd. Also how htcd is called."""

import hashlib
import json
import os
import shutil
import subprocess

STATE = os.path.join(".snakemake", "htcd")
LABEL = "snakemake-directory"


def htcd(*words):
    """Runs htcd, or kubectl's plugin."""
    program = os.environ.get("HTCD") or shutil.which("htcd") or "kubectl-htcjob"
    return subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def directory():
    """A label's value that tells this working directory from others."""
    return hashlib.sha256(f"{os.uname().nodename}:{os.getcwd()}".encode()).hexdigest()[:20]


def write(path, text):
    """Replaces a file as a whole."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.{os.getpid()}", "w") as file:
        file.write(text)
    os.replace(file.name, path)


def _record(path):
    return os.path.join(STATE, "products", hashlib.sha256(path.encode()).hexdigest())


def _digest(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _seen(path):
    stat = os.stat(path)
    return [stat.st_size, stat.st_mtime_ns]


def remember(path, job):
    write(_record(path), json.dumps({"job": job, "digest": _digest(path), "seen": _seen(path)}))


def producer(path):
    """The HTCJob that has made this file as it is now, or None."""
    try:
        with open(_record(path)) as file:
            record = json.load(file)
    except FileNotFoundError:
        return None
    if record["seen"] != _seen(path):  # snakemake touches what is complete
        if record["digest"] != _digest(path):
            return None
        record["seen"] = _seen(path)
        write(_record(path), json.dumps(record))
    return record["job"]
