"""The requests to the Kubernetes API: HTCJobs, ConfigMaps, and what htcd serves of jobs' output."""

from __future__ import annotations

import json
import math
import os
import socket
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import BinaryIO
from urllib.parse import quote, urlsplit

from .errors import Error
from .types import GROUP, PLURAL, VERSION

try:
    from urllib3.exceptions import HTTPError
except ImportError:  # it comes with kubernetes, which connect asks for
    HTTPError = OSError

OUTPUT = "/apis/output.htc.cern.ch/v1alpha1"
_IN_A_POD = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
# Seconds to connect, and for which a connection may say nothing.
_TIMEOUT = (10, 60)
# For how many seconds after a good answer a 401 or 403 may pass.
_PATIENCE = 300
# How many connections are kept for the next requests.
_CONNECTIONS = 100
# What clients of the API differ in.
_SETTINGS = (
    "host", "ssl_ca_cert", "cert_file", "key_file", "verify_ssl", "tls_server_name", "proxy", "api_key", "username",
    "password",
)


class Refused(Error):
    """An answer of the API that says no. Those that pass with time are passing."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.message, self.status = message, status
        self.lacks_right = status == 403 and '" cannot ' in message  # and not because of a quota, or a webhook
        self.passing = not 400 <= status < 500 or status in (408, 409, 429)

    def __reduce__(self):
        return type(self), (self.status, self.message)


class Patience:
    """Says how long a refusal is borne. Rights and logins may be away for a while, as while the API starts."""

    def __init__(self):
        self._good = -math.inf  # when the last answer was none

    def answered(self) -> None:
        self._good = time.monotonic()

    def bears(self, e: Refused) -> bool:
        return e.passing or e.status in (401, 403) and time.monotonic() - self._good < _PATIENCE


class Cluster:
    """One namespace of a cluster, with the rights of a kubeconfig, or of the pod that this runs in."""

    def __init__(self, client, namespace: str, login: Callable | None = None):
        self.client, self._login = client, login  # which returns another client, when this one's login has expired
        self.namespace = namespace

    def jobs(self, name: str = "") -> str:
        return f"/apis/{GROUP}/{VERSION}/namespaces/{quote(self.namespace)}/{PLURAL}/{quote(name)}".rstrip("/")

    def output(self, name: str, what: str = "") -> str:
        return f"{OUTPUT}/namespaces/{quote(self.namespace)}/{PLURAL}/{quote(name)}/log{what}"

    def config_maps(self) -> str:
        return f"/api/v1/namespaces/{quote(self.namespace)}/configmaps"

    def secrets(self) -> str:
        return f"/api/v1/namespaces/{quote(self.namespace)}/secrets"

    def uploads(self, name: str) -> str:
        return f"{OUTPUT}/namespaces/{quote(self.namespace)}/uploads/{quote(name, safe=':')}"

    def own_address(self) -> str:
        """Returns the address of this machine from which it reaches the Kubernetes API."""
        server = urlsplit(self.client.configuration.host)
        family, kind, _, _, to = socket.getaddrinfo(server.hostname, server.port or 443, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as s:
            s.connect(to)  # sends nothing
            return s.getsockname()[0]

    def open(self, method: str, path: str, query: dict | None = None, body: dict | bytes | None = None):
        """Returns an answer that is still to be read, and to be closed."""
        try:
            return self._open(method, path, query, body)
        except Refused as e:
            if e.status != 401 or not self._login:
                raise
            try:
                self.client = self._login()  # somebody may have logged in again
            except Exception:  # a file that is just being written, or what a program of the kubeconfig says
                raise e from None
        return self._open(method, path, query, body)

    def _open(self, method: str, path: str, query: dict | None, body: dict | bytes | None):
        from kubernetes.client.rest import ApiException

        headers = {"Accept": "*/*"}
        if isinstance(body, bytes):
            headers["Content-Type"] = "application/octet-stream"
        elif body is not None:
            headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            return self.client.call_api(
                path, method, query_params=list((query or {}).items()), header_params=headers, body=body,
                auth_settings=["BearerToken"], _preload_content=False, _request_timeout=_TIMEOUT,
                _return_http_data_only=True,
            )
        except ApiException as e:
            raise Refused(e.status, _said(e)) from None
        except (HTTPError, OSError) as e:
            raise Refused(0, f"the Kubernetes API cannot be reached: {e}") from e

    def read(self, method: str, path: str, query: dict | None = None, body: dict | bytes | None = None) -> bytes:
        """Returns a whole answer."""
        with closing(self.open(method, path, query, body)) as answer:
            return _Content(answer).read()

    def object(self, method: str, path: str, query: dict | None = None, body: dict | None = None) -> dict:
        return json.loads(self.read(method, path, query, body))

    def lines(self, path: str, query: dict) -> Iterator[dict]:
        return (json.loads(line) for line in self.read("GET", path, query).splitlines())

    def files(self, name: str, query: dict) -> Iterator[tuple[int, str, _Content]]:
        """Yields the files that ended jobs have left: a job's number, a path, and the content, to be read at once."""
        with closing(self.open("GET", self.output(name, "/archive"), query)) as answer:
            try:
                with tarfile.open(fileobj=_Content(answer), mode="r|") as archive:
                    for entry in archive:
                        proc, _, path = entry.name.partition("/")
                        if entry.isfile():
                            yield int(proc), path, _Content(archive.extractfile(entry))
            except tarfile.ReadError:
                return  # there is nothing in it


class _Content:
    """Reads, and says of a connection that breaks meanwhile that this passes."""

    def __init__(self, raw: BinaryIO):
        self.raw = raw

    def read(self, size: int = -1) -> bytes:
        try:
            return self.raw.read(None if size < 0 else size)
        except (tarfile.TarError, HTTPError, OSError) as e:
            raise Refused(0, f"the connection to the Kubernetes API broke: {e}") from e


def connect(namespace: str | None = None) -> Cluster:
    """Uses the kubeconfig, as kubectl does, or the service account of the pod that this runs in."""
    client, own, context = _client()
    return Cluster(client, namespace or own, lambda: _client(context)[0])


def _client(context: str | None = None) -> tuple:
    """Returns a client of the API, its own namespace, and its context of the kubeconfig, which a pod's has not.

    context: one that it had before. Somebody may have changed to another since, perhaps of another cluster.
    """
    try:
        from kubernetes import client, config
    except ImportError:
        raise Error("htc needs kubernetes: pip install kubernetes, or Debian's python3-kubernetes") from None
    settings = client.Configuration()
    own, has = "default", context
    try:
        if not has:
            current = config.list_kube_config_contexts()[1]
            has, own = current["name"], current["context"].get("namespace") or own
        config.load_kube_config(client_configuration=settings, context=has)
    except config.ConfigException as no_file:
        if context:
            raise
        own, has = "default", None
        try:
            config.load_incluster_config(client_configuration=settings)
        except config.ConfigException:
            raise Error(f"no cluster is known: set KUBECONFIG, or write ~/.kube/config ({no_file})") from None
        if os.path.exists(_IN_A_POD):
            with open(_IN_A_POD, encoding="utf-8") as f:
                own = f.read().strip()
    return _shared(client, settings), own, has


_last: tuple = (), None


def _shared(client, settings):
    """Returns the client of these settings. Each keeps connections, and there may be a thousand HTCJobs."""
    global _last
    made_of, last = tuple(str(getattr(settings, name, "")) for name in _SETTINGS), _last
    if made_of != last[0]:
        settings.connection_pool_maxsize = _CONNECTIONS
        _last = last = made_of, client.ApiClient(settings)
    return last[1]


def _said(e) -> str:
    """Returns what an ApiException says for people, and what they can do about it."""
    body = e.body.decode("utf-8", "replace") if isinstance(e.body, bytes) else e.body or ""
    try:
        said = json.loads(body)["message"]
    except (ValueError, KeyError, TypeError):
        said = f"{e.status} {e.reason}: {body.strip()}".rstrip(": ")
    if e.status == 401 or 'User "system:anonymous"' in said:
        return f"{said}: your login has expired, or the kubeconfig has none; log in again, as for kubectl"
    if e.status == 403 and "exceeded quota" in said:
        return f"{said}: delete what you no longer need (kubectl get htcjobs), or ask for a larger quota"
    return said
