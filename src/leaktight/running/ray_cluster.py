"""Ray as who does the work: a Ray of our own on this machine, or a cluster that is there."""

from __future__ import annotations

import gc
import os
import secrets
import signal
import socket
import subprocess
import threading
import warnings
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Self

from leaktight.core.errors import InvalidValue, LeaktightError
from leaktight.core.private import reason, write_private
from leaktight.core.temporary import private_temporary
from leaktight.core.threads import cores
from leaktight.running.worker_pool import Result, Task, WorkerPool, WorkerSetup

LOOPBACK = "127.0.0.1"
_PATIENCE = 10.0
_STARTS = 3
"""How often a Ray of our own is started at most.

Ray itself waits half a minute for each of its parts, whatever it is told.
"""
_OFF = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what Ray will do by itself soon, and warns of until then
}
_PATIENT = {
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_gcs_rpc_server_connect_timeout_s": "60",
    # Ray would run workers at 15, where they stand still while anything else computes.
    "RAY_worker_niceness": "0",
}


def private_environment(environment: MutableMapping[str, str] | None = None, token: Path | None = None) -> None:
    """Let a Ray that is started in an environment be private and bear a busy machine.

    It tells nobody about itself and listens on loopback alone.

    Ray listens on all interfaces where it believes that it may become a cluster; the variable is its switch for systems
    where it may not.

    Args:
        environment: of the process that starts it; None is this one, and Ray must not have been imported yet.
        token: the file with what everybody must know who speaks to one of its ports; None asks nobody.
    """
    where = os.environ if environment is None else environment
    where.update(_OFF)
    where["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    for name, seconds in _PATIENT.items():
        where.setdefault(name, seconds)
    if token is not None:
        where.pop("RAY_AUTH_TOKEN", None)
        where.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)})


def write_token(path: Path) -> Path:
    """Write a new secret of 256 bits for Ray's authentication into a file for its owner alone."""
    write_private(path, secrets.token_hex(32).encode())
    return path


class Cluster:
    """Starts workers on Ray: pass it to an audit or a search as its `workers`.

    Without an address, a Ray of our own is started when it is first needed, with sockets on loopback and files for
    their owner alone, and is stopped and removed at the end of the block. Each of its ports asks for a secret that is
    in one of those files, so that other users of the machine can neither submit a task nor join. With an address
    nothing is started or stopped but workers. What goes to a worker and comes back is JSON and safetensors; nothing is
    written on its machine, and the caller alone writes results down. Every machine needs the same Leaktight and data
    under the same paths; a worker that has something else fails its cells with a sentence that says so.

    Args:
        workers: how many, at least 1, each with one torch thread; None is one for each processor that Ray knows of.
        address: of the cluster's head as `host:port`; None starts one here. If it is more than one machine, it must
            speak TLS (`RAY_USE_TLS=1`): models and private heads travel.

    Example:
        >>> Cluster(workers=0)
        Traceback (most recent call last):
        leaktight.core.errors.InvalidValue: The number of workers must be at least 1. Got 0 instead.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        if workers is not None and workers < 1:
            raise InvalidValue(f"The number of workers must be at least 1. Got {workers} instead.")
        self._workers, self._address = workers, address
        self._ray: ModuleType | None = None
        self._started = ExitStack()
        self._ours = False

    def __call__(self, setup: WorkerSetup[Task, Result]) -> WorkerPool[Task, Result]:
        """Return a pool of workers with a setup."""
        from leaktight.running.ray_workers import RayWorkers

        ray = self.start()
        most = int(ray.cluster_resources().get("CPU", 1)) or 1
        return RayWorkers(ray, min(self._workers or most, most), setup)

    def start(self) -> ModuleType:
        """Start Ray or join the cluster, if that was not done yet, and return the package.

        Starting workers does it, too.
        """
        if self._ray is None:
            ray = _import_ray(local=self._address is None)
            # A Ray that the caller's own program uses is used too, and is the caller's to stop.
            ours = not ray.is_initialized()
            if ours:
                self._start(ray) if self._address is None else _join(ray, self._address)
            self._ray, self._ours = ray, ours
        return self._ray

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the Ray that was started, or leave the cluster."""
        if self._ray is not None and self._ours:
            with _collect_garbage():
                self._ray.shutdown()
        self._started.close()
        self._ray, self._ours = None, False

    def _start(self, ray: ModuleType) -> None:
        for left in reversed(range(_STARTS)):
            folder = self._started.enter_context(private_temporary())
            self._started.enter_context(_authenticate(ray, write_token(folder / "token")))
            try:
                self._init(ray, folder)
                return
            # Ctrl-C too, as what runs already would outlive it; and what Ray raises if a start fails may be no more
            # than an Exception.
            except BaseException as error:
                self._undo(ray, folder)
                if not isinstance(error, Exception) or isinstance(error, LeaktightError):
                    raise
                if not left:
                    raise LeaktightError(
                        f"Ray could not be started here: {_first_line(error)}. "
                        "Try again when the machine is less busy, or use `--backend local`."
                    ) from error

    def _init(self, ray: ModuleType, folder: Path) -> None:
        with _collect_garbage(), _own_handler():
            ray.init(
                address="local",
                num_cpus=self._workers or cores(),
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                _node_ip_address=LOOPBACK,
                _temp_dir=f"{folder}/files",  # Ray opens its own folder to everybody
            )
        if ray.util.get_node_ip_address() != LOOPBACK:
            raise LeaktightError(
                "Ray must listen on loopback alone, and was imported before it could be told so. Import it later."
            )

    def _undo(self, ray: ModuleType, folder: Path) -> None:
        """End what a failed start has started, and remove its files.

        Ray leaves it running until this process ends.
        """
        with _collect_garbage():
            ray.shutdown()
            _end_all(folder)
        self._started.close()


def _import_ray(*, local: bool) -> ModuleType:
    if local:
        private_environment()
    os.environ.update(_OFF)
    try:
        import ray
    except ImportError as error:
        raise InvalidValue(
            "The backend `ray` needs the package ray, which is not installed here. Install `leaktight[ray]`, or use "
            "`--backend local`."
        ) from error
    found: ModuleType = ray
    return found


@contextmanager
def _collect_garbage() -> Iterator[None]:
    """Let Ray leave open files and processes to the garbage collector in the block, and collect what is left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            yield
        finally:
            gc.collect()


@contextmanager
def _authenticate(ray: ModuleType, token: Path) -> Iterator[None]:
    """Let Ray ask for a token in the block, though it may have been imported before; afterwards all is as it was."""
    names = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
    before = {name: os.environ[name] for name in names if name in os.environ}
    private_environment(token=token)
    try:
        _read_again(ray)
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)
        _read_again(ray)


def _read_again(ray: ModuleType) -> None:
    """Let Ray read its settings from the environment again; it does so once, when it is imported.

    Raises:
        LeaktightError: this Ray asks for no token.
    """
    native = ray._raylet
    native.Config.initialize("")
    native.AuthenticationTokenLoader.instance().reset_cache()
    wanted = os.environ.get("RAY_AUTH_MODE") == "token"
    if (native.get_authentication_mode() == native.AuthenticationMode.TOKEN) != wanted:
        raise LeaktightError(
            "Ray must ask everybody for a token, and this one cannot. Install a newer Ray, or use `--backend local`."
        )


@contextmanager
def _own_handler() -> Iterator[None]:
    """Keep what this program does on SIGTERM in the block: Ray would end it without a word."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _end_all(folder: Path) -> None:
    """End the processes whose files are in a folder of our own.

    The command lines of all parts of a Ray name that folder.
    """
    command = ["ps", "-A", "-ww", "-o", "pid=,args="]
    listing = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - the words are ours
    for pid, words in (line.split(maxsplit=1) for line in listing.splitlines()):
        if f"{folder}/" in words:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")


def _join(ray: ModuleType, address: str) -> None:
    _knock(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InvalidValue(
            f"There is no Ray to be reached at `{address}`: {_first_line(error)}. Check the address, or leave it out."
        ) from error
    machines = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    if len(machines) > 1 and os.environ.get("RAY_USE_TLS") != "1":
        ray.shutdown()
        raise InvalidValue(
            f"The Ray at `{address}` is {len(machines)} machines that speak without TLS, and models and private heads "
            "would travel. Start it with `RAY_USE_TLS=1` and certificates, and set the same here."
        )


def _knock(address: str) -> None:
    """Raise if nobody listens at an address; Ray itself would try for minutes."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit():
        raise InvalidValue(f"The address of a Ray cluster must have the form `host:port`. Got {address!r} instead.")
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except (OSError, OverflowError) as error:
        said = reason(error) if isinstance(error, OSError) else str(error)
        raise InvalidValue(
            f"There is no Ray to be reached at `{address}`: {said}. Check the address, or leave it out."
        ) from error
