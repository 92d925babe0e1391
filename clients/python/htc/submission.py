"""From a function or a script to an HTCJob."""

from __future__ import annotations

import base64
import difflib
import json
import os
import pickle
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import payload, uploads
from .cluster import OUTPUT, Cluster, Refused, connect
from .errors import Error
from .futures import Futures
from .types import GROUP, KIND, VERSION, HTCJobSpec

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Bytes in a ConfigMap, of all files together.
_MOST_FILES = 1 << 20
# As many variables, and bytes of items, stand in the HTCJob itself. It travels with each change of its status, so more
# are in a ConfigMap.
_MOST_VARIABLES, _MOST_ITEMS = 1000, 32 << 10
_TABLE = "htc-items.json"
# Seconds before each question whether an HTCJob was made whose creation was not answered.
_PAUSES = 0, 1, 3, 9
# Fields of the spec that submit fills.
_OURS = {
    "script": "image= and command=", "resources": "memory=, cpus=, disk= and gpus=",
    "queue": "items=", "itemsFrom": "items=", "parameters": "items=",
}


def submit(
    what: Callable | str | Path,
    *,
    items: Iterable | None = None,
    image: str,
    command: str | None = None,
    memory: int | str | None = None,
    cpus: int | str | None = None,
    disk: int | str | None = None,
    gpus: int | str | None = None,
    files: Iterable[str | os.PathLike] = (),
    name: str | None = None,
    namespace: str | None = None,
    **fields: Unpack[HTCJobSpec],
) -> Futures:
    """Runs a function or a script once for each item, as an HTCJob, and returns its jobs as futures.

    A function is called with the item; a job's result is what it returns. A script, a text or a Path, has the variables
    of its item, a dict, in its environment; a job's result is its standard output. Without items there is one job. The
    files are put beside the script. Any other field of an HTCJob's spec can be given by its name, such as retries=3.
    """
    check(fields, _OURS)
    table = None if items is None else list(items)
    if table == []:
        raise Error("items is empty: there would be no job")
    count = 1 if table is None else len(table)
    bundle: dict[str, bytes | Path] = {}  # of large files the paths
    for f in [Path(f) for f in files]:
        if f.name in (*bundle, _TABLE) or callable(what) and f.name in (payload.FUNCTION, payload.PICKLER):
            raise Error(f"files has {f}, but {f.name} is another file's name beside the script: give it another one")
        if f.is_dir():
            raise Error(
                f"files has {f}, which is a directory: name its files, or upload it (htcd upload, and inputs=[...] "
                "with unpack); a package can travel with the function: cloudpickle.register_pickle_by_value(package)"
            )
        bundle[f.name] = f if f.stat().st_size > _MOST_FILES else f.read_bytes()
    spec: dict[str, Any] = dict(fields)
    if callable(what):
        bundle.update(payload.pack(what, table))
        spec["script"] = {"image": image, "command": command or "python3", "source": payload.source(), "queue": count}
        if "outputs" in spec:
            spec["outputs"] = [*spec["outputs"], {"path": payload.RESULT}]
    else:
        source = what.read_text(encoding="utf-8") if isinstance(what, Path) else what
        spec["script"] = {"image": image, "command": command or "bash", "source": source}
    spec["resources"] = requests(memory=memory, cpus=cpus, disk=disk, gpus=gpus)
    own = name is None
    name = name or f"{_word(what)}-{secrets.token_hex(4)}"
    check_name(name, 253)
    config_map = f"{name[:220]}-inputs-{secrets.token_hex(5)}"
    rows: dict[str, bytes] = {}
    if table and not callable(what):
        table = [_variables(i, item) for i, item in enumerate(table)]
        text = json.dumps(table)
        if sum(len(item) for item in table) <= _MOST_VARIABLES and len(text) <= _MOST_ITEMS:
            spec["items"] = table
        else:
            spec["itemsFrom"] = {"configMapKeyRef": {"name": config_map, "key": _TABLE}}
            rows = {_TABLE: text.encode()}
            if len(rows[_TABLE]) > _MOST_FILES:
                raise Error(
                    f"the items have {len(rows[_TABLE])} bytes, and 1 MiB can be sent with an HTCJob: send names "
                    "instead of data, and let jobs fetch what is large (files=[...], inputs=[...])"
                )
    cluster = connect(namespace)
    _check_output(cluster)
    ours = _inputs(cluster, bundle, config_map, _MOST_FILES - sum(len(text) for text in rows.values()))
    spec["inputs"] = [*spec.get("inputs", []), *ours]
    bundle.update(rows)
    job = {"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": {"name": name}, "spec": spec}
    return _futures(cluster, _create(cluster, job, config_map, bundle, own), count)


def map(what: Callable | str | Path, items: Iterable, *, timeout: float | None = None, **options) -> Iterator:
    """Submits at once and returns an iterator of the results, in the order of the items; timeout holds for each."""
    futures = submit(what, items=items, **options)
    return (future.result(timeout) for future in futures)


def attach(name: str, namespace: str | None = None) -> Futures:
    """Returns the jobs of an HTCJob that exists, such as one of a notebook that was restarted."""
    cluster = connect(namespace)
    job = cluster.object("GET", cluster.jobs(name))
    count = _count(job["spec"], job.get("status", {}))
    if not count:
        raise Error(f"how many jobs {name} has is not known: try again when it was sent (kubectl get htcjob {name})")
    return _futures(cluster, job, count)


def _count(spec: dict, status: dict) -> int:
    """Returns how many jobs an HTCJob has, 0 if that is not known yet."""
    if spec.get("items"):
        return len(spec["items"])
    if not spec.get("itemsFrom") and not spec.get("parameters"):
        return spec["script"].get("queue") or spec.get("queue") or 1
    # The counts lack what was removed with a whole attempt. The ids are such as 7.0, or 7.0-99.
    last = "".join(status.get("jobid", [])[-1:]).partition(".")[2].rpartition("-")[2]
    known = sum(status.get(word, 0) for word in ("active", "succeeded", "failed"))
    return max(known, int(last) + 1 if last.isdigit() else 0)


def _futures(cluster: Cluster, job: dict, count: int) -> Futures:
    if any(i["name"] == payload.FUNCTION for i in job["spec"].get("inputs", [])):
        return Futures(cluster, job, count, payload.RESULT, pickle.loads)
    return Futures(cluster, job, count, "_condor_stdout", lambda text: text.decode("utf-8", "replace"))


def _inputs(cluster: Cluster, bundle: dict[str, bytes | Path], config_map: str, most: int) -> list[dict]:
    """Returns the inputs that bring the files. It uploads, and drops from the bundle, what is too large for it."""
    sizes = {name: f.stat().st_size if isinstance(f, Path) else len(f) for name, f in bundle.items()}
    large = {name: uploads.upload(cluster, bundle.pop(name)) for name in uploads.too_large(sizes, most)}
    small = [{"name": f, "configMapKeyRef": {"name": config_map, "key": f}} for f in bundle]
    return [*small, *({"name": f, "upload": u} for f, u in large.items())]


def _check_output(cluster: Cluster) -> None:
    try:
        cluster.read("GET", OUTPUT)
    except Refused as e:
        if e.status == 404:
            raise Error(
                "this cluster does not serve the output of jobs, and without it there are no results: ask the "
                "administrator of htcd for deploy/components/output"
            ) from None
        if not e.passing:
            raise


def _create(cluster: Cluster, job: dict, config_map: str, bundle: dict[str, bytes], own: bool) -> dict:
    """Creates the HTCJob and then its ConfigMap, which belongs to it from the beginning: nothing is left behind.

    own: the HTCJob has a name that nobody else has chosen.
    """
    metadata: dict[str, Any] = {"name": config_map}
    packed = {f: base64.b64encode(data).decode() for f, data in bundle.items()}
    content = {"metadata": metadata, "immutable": True, "binaryData": packed}
    if bundle:
        try:
            cluster.read("POST", cluster.config_maps(), {"dryRun": "All"}, content)
        except Refused as e:
            if e.lacks_right:
                raise Error(
                    f"functions and files need the right to create ConfigMaps (ClusterRole htcjob-input-files): {e}"
                ) from None
            raise
    name = job["metadata"]["name"]
    try:
        job = cluster.object("POST", cluster.jobs(), {"fieldValidation": "Strict"}, job)
    except Refused as e:
        if e.status == 409:
            raise Error(
                f"there is an HTCJob {name} already: choose another name, or delete it; its jobs: htc.attach({name!r})"
            ) from None
        if 0 < e.status < 500:
            raise
        job = _made(cluster, name, config_map, own, e)
    except KeyboardInterrupt as e:
        _take_back(cluster, _made(cluster, name, config_map, own, e), e)
        raise
    if bundle:
        owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": name, "uid": job["metadata"]["uid"]}
        metadata["ownerReferences"] = [owner]
        try:
            cluster.read("POST", cluster.config_maps(), body=content)
        except BaseException as e:  # also Ctrl-C: it would wait for ever
            _take_back(cluster, job, e)
            raise
    return job


def _take_back(cluster: Cluster, job: dict, why: BaseException) -> None:
    metadata = job["metadata"]
    try:
        cluster.read("DELETE", cluster.jobs(metadata["name"]), body={"preconditions": {"uid": metadata["uid"]}})
    except Refused:
        left = f"the HTCJob {metadata['name']} is left behind: kubectl delete htcjob {metadata['name']}"
        raise Error(f"{str(why) or 'interrupted'}; {left}") from why


def _made(cluster: Cluster, name: str, config_map: str, own: bool, lost: BaseException) -> dict:
    """Returns the HTCJob whose creation was not answered; raises that if it was not made, as far as is known."""
    for pause in _PAUSES:
        time.sleep(pause)
        try:
            job = cluster.object("GET", cluster.jobs(name))
        except Refused as e:
            if e.status == 404:
                raise lost from None
            continue
        if own or any(i.get("configMapKeyRef", {}).get("name") == config_map for i in job["spec"].get("inputs", [])):
            return job
        break
    why = str(lost) or "interrupted"
    raise Error(f"{why}; the HTCJob {name} may have been made: kubectl get htcjob {name}, htc.attach({name!r})")


def check(fields: dict, ours: dict[str, str]) -> None:
    """Refuses fields that the spec of an HTCJob has not, and those that are ours, which says what to use instead."""
    for field in fields:
        if field in ours:
            raise Error(f"{field} is not given itself: use {ours[field]}")
        if field not in HTCJobSpec.__annotations__:
            near = difflib.get_close_matches(field, HTCJobSpec.__annotations__, 1)
            hint = f"do you mean {near[0]}?" if near else "docs/htcjob.md lists them"
            raise Error(f"the spec of an HTCJob has no field {field}: {hint}")


def check_name(name: str, most: int) -> None:
    if not re.fullmatch("[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name) or len(name) > most:
        raise Error(f"name {name!r}: want at most {most} lower-case letters, digits, - and ., none of - . at the ends")


def requests(**resources: int | str | None) -> dict[str, int | str]:
    """Returns what is given of memory, cpus, disk and gpus."""
    return {resource: value for resource, value in resources.items() if value is not None}


def _variables(i: int, item: Any) -> dict[str, str]:
    if not isinstance(item, Mapping) or not item:
        raise Error(f"items[{i}] is {item!r}: an item of a script is a dict of variables, such as {{'SEED': 1}}")
    for variable, value in item.items():
        if not isinstance(value, (str, int, float)):
            raise Error(f"items[{i}]: {variable} is {value!r}: a variable of a script is a text or a number")
    return {variable: str(value) for variable, value in item.items()}


def _word(what: Any) -> str:
    """Returns the beginning of an HTCJob's name."""
    word = re.sub("[^a-z0-9]+", "-", getattr(what, "__name__", "script").lower())[:40].strip("-")
    return word or "function"
