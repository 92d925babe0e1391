"""Files that are too large for a ConfigMap, which htcd keeps for the jobs."""

from __future__ import annotations

import hashlib
import io
import json
import time
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

from .cluster import Cluster, Refused
from .errors import Error

# Bytes of one request, which the apiserver breaks off after a minute.
_PIECE = 16 << 20
# Seconds before each further try while nothing arrives.
_PAUSES = 1, 3, 9, 20


def too_large(sizes: dict[str, int], most: int) -> list[str]:
    """Returns the names of the files, the largest first, without which the others have at most so many bytes."""
    total, names = sum(sizes.values()), []
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if total <= most:
            break
        total -= sizes[name]
        names.append(name)
    return names


def upload(cluster: Cluster, content: bytes | Path) -> str:
    """Uploads what is not there yet, and returns its name. It goes on where a connection broke."""
    with closing(open(content, "rb") if isinstance(content, Path) else io.BytesIO(content)) as file:
        digest = hashlib.sha256()
        while piece := file.read(_PIECE):
            digest.update(piece)
        name, size = f"sha256:{digest.hexdigest()}", file.tell()
        pauses, reached = iter(_PAUSES), 0
        while True:
            try:
                there = _add(cluster, name, {"size": size})
                while not there["whole"]:
                    if there["offset"] > reached:
                        pauses, reached = iter(_PAUSES), there["offset"]
                    there = _add(cluster, name, {"offset": there["offset"]}, _piece(file, there["offset"]))
                return name
            except Refused as e:
                pause = next(pauses, None)
                # Somebody else may have added to it, or dropped it.
                if pause is None or not (e.passing or e.status == 404):
                    raise Error(f"{size} bytes cannot be uploaded for the jobs: {e}") from e
                time.sleep(pause)


def _piece(file: BinaryIO, offset: int) -> bytes:
    file.seek(offset)
    return file.read(_PIECE)


def _add(cluster: Cluster, name: str, query: dict, piece: bytes | None = None) -> dict:
    return json.loads(cluster.read("PATCH", cluster.uploads(name), query, piece))
