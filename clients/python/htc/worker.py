# A worker of a notebook's Dask. Its arguments: its number in the HTCJob, the number of the first one, the scheduler's
# address, and options of `dask worker`.
import os
import secrets
import signal
import socket
import sys
from urllib.parse import urlsplit

here = os.path.dirname(os.path.abspath(__file__))


def own_address(scheduler):
    """Returns the address of this machine from which the scheduler is reached."""
    to = urlsplit(scheduler)
    family, kind, _, _, address = socket.getaddrinfo(to.hostname, to.port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as s:
        s.connect(address)  # sends nothing
        return s.getsockname()[0]


def end_at_once():
    """Has SIGTERM end this worker: Dask waits for its task then, and for good if the scheduler is just closing it."""
    install = signal.signal
    install(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    signal.signal = lambda number, handler: None if number == signal.SIGTERM else install(number, handler)


def main(proc, first, scheduler, *options):
    try:
        from distributed.cli.dask_worker import main as dask_worker
    except ImportError as e:
        sys.exit("The image of a worker needs distributed, of the notebook's version: %s" % e)
    # HTCondor starts an evicted worker again, perhaps before the scheduler knows that the old one is gone.
    name = "%d-%s" % (int(proc) + int(first), secrets.token_hex(4))
    own = ["--tls-%s=%s" % (part, os.path.join(here, "dask-" + part)) for part in ("ca-file", "cert", "key")]
    if not any(option.startswith(("--host", "--interface", "--listen-address")) for option in options):
        own += ["--host", own_address(scheduler)]
    end_at_once()
    # HTCondor does what a nanny does.
    dask_worker(
        [scheduler, "--name", name, "--no-nanny", "--no-dashboard", "--death-timeout", "60",
         "--local-directory", os.getcwd(), *own, *options]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
