"""Supervised worker processes: for work that must not wait for other threads, or that may kill its process.

A worker is a fresh interpreter, never a fork: this process has threads, and perhaps a GPU. It builds its function once,
then works on jobs, one at a time. Arrays and other large buffers go both ways in shared memory, without a copy for the
receiver; the memory is free when the last array on it is. A worker that dies or stalls is started again, and the items
that it had are tried again one by one, until the one that it died of is known.
"""

from __future__ import annotations

import ctypes
import json
import logging
import mmap
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Literal

from embark.allocation import ENVIRONMENT
from embark.types import EmbarkError

POSSIBLE = hasattr(socket, "send_fds")  # not on Windows
ITEM_SECONDS = 120.0  # for one item, after which its worker is killed
START_SECONDS = 900.0  # for building the function: a large model may come from a slow disk
CLOSING_SECONDS = 0.4  # for the end of workers that are killed
TRIES = 2  # of an item that its worker dies of, and of a worker that dies while it starts
AHEAD = 2  # jobs that a worker has at once: it need not wait until this process finds time for its next one
HOPELESS = 32  # workers that die in a row without having finished one job
SINGLE_THREADED = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}

Work = Callable[[Any], Any]
STALLED = "took longer than"
logger = logging.getLogger("embark")


class WorkerLost(EmbarkError):
    """An item that its worker process died of twice, or did not finish in time; `reason` is what happened."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NoWorkers(EmbarkError):
    """No worker process can be started, or all die whatever they work on."""


class WorkersDie(NoWorkers):
    """Worker processes start, but die whatever they work on: so might the process that did their work."""


class Workers:
    """Processes, one for each factory; it calls the factory, which must pickle, and gives items to what that returns.

    `seconds` is the limit for one item; `environment` are variables that differ from this process's. A worker that
    cannot be started is given up, with a warning that says its name, and its work is the others'.
    """

    def __init__(
        self,
        factories: Sequence[Callable[[], Work]],
        *,
        names: Sequence[str] = (),
        seconds: float = ITEM_SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        names = names or [f"worker process {number}" for number in range(1, len(factories) + 1)]
        self._pool = _Pool([pickle.dumps(factory, 5) for factory in factories], names, seconds, environment or {})
        self._closing = weakref.finalize(self, self._pool.close)
        self._pool.start()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def submit(self, items: Sequence[Any]) -> Future[list[Any]]:
        """The results of all items, in order; in place of one that no worker survives, a `WorkerLost`.

        An error that the function raises is the error of the whole job.
        """
        job = _Job(list(items), _Outcome(len(items)))
        self._pool.add(job)
        return job.outcome.future

    def close(self) -> None:
        """Kill all workers, whatever they work on; jobs that are not finished are cancelled."""
        self._closing()

    @property
    def pids(self) -> list[int]:
        """The ids of the processes that live."""
        return [worker.process.pid for worker in self._pool.workers.values()]

    @property
    def deaths(self) -> list[str]:
        """What the workers died of so far."""
        return list(self._pool.deaths)


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Outcome:
    """The results of the items of one job, which may be worked on in several."""

    def __init__(self, count: int) -> None:
        self.future: Future[list[Any]] = Future()
        self.results: list[Any] = [None] * count
        self.missing = count
        self.lock = threading.Lock()

    def put(self, start: int, results: Sequence[Any]) -> None:
        with self.lock:
            self.results[start : start + len(results)] = results
            self.missing -= len(results)
            finished = self.missing == 0
        if finished and self.future.set_running_or_notify_cancel():
            self.future.set_result(self.results)

    def fail(self, error: BaseException) -> None:
        with self.lock, suppress(Exception):  # it has failed, or was cancelled
            self.future.set_exception(error)


class _Job:
    """Items that a worker gets at once: all of an outcome's, or one of them; `lost` counts the workers they lost."""

    def __init__(self, items: list[Any], outcome: _Outcome, start: int = 0, lost: int = 0) -> None:
        self.items = items
        self.outcome = outcome
        self.start = start
        self.lost = lost

    def singly(self) -> list[_Job]:
        return [_Job([item], self.outcome, self.start + row, self.lost) for row, item in enumerate(self.items)]


# ── supervision ──────────────────────────────────────────────────────────────────────────────────────────────────────


class _Lost(Exception):
    """A worker died or was killed; its argument is what happened, in words."""


class _Pool:
    """The workers' supervisors: one thread a worker starts it, feeds it, waits for it, and starts it again."""

    def __init__(
        self, factories: Sequence[bytes], names: Sequence[str], seconds: float, environment: Mapping[str, str]
    ) -> None:
        self.factories = factories
        self.names = names
        self.seconds = seconds
        self.environment = environment
        self.waiting: deque[_Job] = deque()
        self.changed = threading.Condition()
        self.closed = False
        self.error: NoWorkers | None = None
        self.idle = 0  # supervisors that wait for a job
        self.left = len(factories)  # workers that are not given up
        self.workers: dict[int, _Worker] = {}
        self.deaths: list[str] = []
        self.in_a_row = 0
        self.threads = [
            threading.Thread(target=self._supervise, args=(number,), name=f"embark-worker-{number}", daemon=True)
            for number in range(len(factories))
        ]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def add(self, job: _Job) -> None:
        with self.changed:
            if self.error or self.closed:
                raise self.error or NoWorkers("The worker processes are closed.")
            self.waiting.append(job)
            self.changed.notify()

    def close(self) -> None:
        with self.changed:
            self.closed = True
            waiting = list(self.waiting)
            self.waiting.clear()
            workers = list(self.workers.values())
            self.changed.notify_all()
        for job in waiting:
            job.outcome.future.cancel()
        for worker in workers:
            worker.kill()
        end = time.monotonic() + CLOSING_SECONDS
        for thread in self.threads:
            if thread is not threading.current_thread() and thread.is_alive():
                thread.join(max(0.0, end - time.monotonic()))

    def _supervise(self, number: int) -> None:
        """A supervisor's life. The worker dies with this thread, see `_die_with_parent`."""
        try:
            self._keep_alive(number)
        except BaseException as error:  # a fault of ours, of which nobody would hear
            with self.changed:
                self._fail(f"The supervisor of a worker process failed: {type(error).__name__}: {error}")

    def _keep_alive(self, number: int) -> None:
        while (worker := self._start(number)) is not None:
            flying: deque[_Job] = deque()
            try:
                self._feed(worker, flying)
            except (_Lost, OSError, EOFError) as error:
                cause = worker.cause() if not isinstance(error, _Lost) else str(error)
                self._take_back(flying, cause, worker.is_busy)
            finally:
                self.workers.pop(number, None)
                worker.end()
                for job in flying:  # those that were not put back: nobody works on them any more
                    job.outcome.future.cancel()

    def _feed(self, worker: _Worker, flying: deque[_Job]) -> None:
        """Hand jobs to a worker until the pool is closed; `flying` are those that it has."""
        while True:
            while len(flying) < AHEAD and (job := self._next(wait=not flying)) is not None:
                self._send(worker, job, flying)
            del job  # with its arrays, which would be held until the next one comes
            if not flying:
                return
            self._finish(worker, flying)

    def _send(self, worker: _Worker, job: _Job, flying: deque[_Job]) -> None:
        try:
            message = _Message(job.items)
        except Exception as error:  # whoever gave the item knows better what is to be done
            error.add_note("It could not be sent to a worker process.")
            job.outcome.fail(error)
            return
        flying.append(job)
        message.send(worker.channel)

    def _finish(self, worker: _Worker, flying: deque[_Job]) -> None:
        """Wait for the reply to the first job."""
        try:
            succeeded, results = worker.receive(self.seconds)
        except (_Lost, OSError, EOFError):
            raise
        except BaseException as error:  # it came whole, but cannot be unpickled here
            succeeded = False
            results = error
        job = flying.popleft()
        self.in_a_row = 0
        job.outcome.put(job.start, results) if succeeded else job.outcome.fail(results)

    def _next(self, wait: bool) -> _Job | None:
        """The next job; None if the pool is closed, or at once if none is left beside those that others wait for."""

        def is_over() -> bool:
            while self.waiting and self.waiting[0].outcome.future.cancelled():
                self.waiting.popleft()
            return bool(self.waiting) or self.closed or not wait

        with self.changed:
            self.idle += wait
            self.changed.wait_for(is_over)
            self.idle -= wait
            if self.closed or len(self.waiting) <= (0 if wait else self.idle):
                return None
            return self.waiting.popleft()

    def _take_back(self, flying: deque[_Job], cause: str, busy: bool) -> None:
        """Put the jobs of a lost worker back; of the first, if it was `busy` with it, the items one by one."""
        with self.changed:
            if self.closed:
                if self.error:
                    for job in flying:
                        job.outcome.fail(self.error)
                return
            self.deaths.append(cause)
            self.in_a_row += 1
            if self.in_a_row >= HOPELESS:
                reason = f"{self.in_a_row} worker processes died one after the other, the last of {cause}"
                self._fail(reason, flying, WorkersDie)
                return
            begun = list(flying)[: int(busy)]
            unbegun = list(flying)[int(busy) :]
            again: list[_Job] = []
            for job in begun:
                job.lost += 1
                match next_try(len(job.items) == 1, job.lost):
                    case "singly":
                        again = job.singly()
                    case "same":
                        again = [job]
                    case "none":
                        job.outcome.put(job.start, [WorkerLost(loss_reason(cause))])
            flying.clear()
            self.waiting.extendleft(reversed([*again, *unbegun]))
            self.changed.notify_all()

    def _fail(self, reason: str, flying: Sequence[_Job] = (), kind: type[NoWorkers] = NoWorkers) -> None:
        """Give up: all jobs fail, now and later."""
        self.error = kind(f"{reason}.")
        self.closed = True
        for job in (*flying, *self.waiting):
            job.outcome.fail(self.error)
        self.waiting.clear()
        self.changed.notify_all()

    def _start(self, number: int) -> _Worker | None:
        """A worker that has built its function; None if the pool is closed, or the worker cannot be started."""
        reason = ""
        for _ in range(TRIES):
            with self.changed:
                if self.closed:
                    return None
                try:
                    worker = self.workers[number] = _Worker(self.environment)
                except OSError as error:
                    reason = f"it cannot be started ({error})"
                    continue
            try:
                worker.channel.sendall(LENGTH.pack(len(self.factories[number])) + self.factories[number])
                succeeded, failure = worker.receive(START_SECONDS)
                if succeeded:
                    return worker
                reason = f"{type(failure).__name__}: {failure}"
            except (_Lost, OSError, EOFError) as lost:
                failure = None
                reason = f"it died while it started ({lost if isinstance(lost, _Lost) else worker.cause()})"
            self.workers.pop(number, None)
            worker.end()
            if failure is not None:
                break
        with self.changed:
            if not self.closed:
                self.left -= 1
                if self.left:
                    logger.warning("%s is given up, the others go on: %s", self.names[number], reason)
                else:
                    self._fail(f"No worker process can be started: {reason.rstrip('.')}")
        return None


def next_try(alone: bool, lost: int, whole: int = 1, most: int = TRIES) -> Literal["same", "singly", "none"]:
    """How a job is tried again that `lost` workers died of, so that the item is found that they die of.

    A job is tried as it is until `whole` of them died; then item by item, each `alone`, until `most` of them died.
    """
    if not alone:
        return "same" if lost < whole else "singly"
    return "same" if lost < most else "none"


def loss_reason(cause: str = "") -> str:
    """What is said about an item whose worker was lost again when it was alone."""
    return cause if cause.startswith(STALLED) else "killed its worker twice" + (f" ({cause})" if cause else "")


CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]); "
    "from embark.processes import serve; serve(int(sys.argv[1]), int(sys.argv[2]))"
)


def _isolation() -> str:
    """The interpreter's option that keeps a worker from importing what this process would not.

    Not from the working folder, which may be a stranger's, before it has this process's path; nor from the folders of
    the environment or of the user, where this process leaves them out.
    """
    return "-P" + "E" * sys.flags.ignore_environment + "s" * sys.flags.no_user_site


class _Worker:
    """A process, the channel to it, and the clock on which it shows since when it works on its item."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.channel, theirs = socket.socketpair()
        clock = _memory_file(CLOCK.size)
        try:
            for end in (self.channel, theirs):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * INLINE)
            path = json.dumps([folder for folder in sys.path if isinstance(folder, str)])
            self.process = subprocess.Popen(
                [sys.executable, _isolation(), "-c", CHILD, str(theirs.fileno()), str(clock), path],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={**os.environ, **ENVIRONMENT, **environment},
                pass_fds=(theirs.fileno(), clock),
                process_group=0,  # Ctrl-C is for this process, which then ends its workers
            )  # fmt: skip
            self.clock = mmap.mmap(clock, CLOCK.size)
            CLOCK.pack_into(self.clock, 0, time.monotonic())  # an interpreter may stall before it comes to ours
        except OSError:
            self.channel.close()
            raise
        finally:
            theirs.close()
            os.close(clock)

    def receive(self, seconds: float) -> Any:
        """The next reply; a worker that takes longer over an item is killed."""
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        while not poll.poll(1000 * min(1.0, seconds / 4)):
            (since,) = CLOCK.unpack_from(self.clock)
            if since and time.monotonic() - since > seconds:
                self.kill()
                raise _Lost(f"{STALLED} {seconds:g} s")
        return receive(self.channel)

    @property
    def is_busy(self) -> bool:
        """Whether it works on a job, or did when it died."""
        return bool(CLOCK.unpack_from(self.clock)[0])

    def cause(self) -> str:
        """What a worker died of that closed its end of the channel."""
        try:
            status = self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.kill()
            return "it closed its channel"
        if status >= 0:
            return f"exit status {status}"
        with suppress(ValueError):
            return signal.Signals(-status).name
        return f"signal {-status}"

    def kill(self) -> None:
        """Kill the process; whoever waits for its reply is told."""
        with suppress(OSError):
            self.process.kill()
        with suppress(OSError):
            self.channel.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Kill the process, and free all that belongs to it."""
        self.kill()
        self.channel.close()
        self.clock.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)


# ── what a worker does ───────────────────────────────────────────────────────────────────────────────────────────────


def serve(channel_number: int, clock_number: int) -> None:
    """The life of a worker process: build the function, then work on jobs until the channel is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    channel = socket.socket(fileno=channel_number)
    clock = mmap.mmap(clock_number, CLOCK.size)

    def show_time(seconds: float) -> None:
        CLOCK.pack_into(clock, 0, seconds)

    show_time(time.monotonic())
    with suppress(EOFError, OSError):
        (length,) = LENGTH.unpack(_exactly(channel, LENGTH.size))
        data = _exactly(channel, length)
        work, failure = _try(lambda: pickle.loads(data)())
        _Message((failure is None, failure)).send(channel)
        show_time(0)
        while failure is None:
            reply = _reply(channel, work, show_time)
            reply.send(channel)
            show_time(0)
            del reply
    os._exit(0)  # at once, without the farewells of libraries


def _reply(channel: socket.socket, work: Work, show_time: Callable[[float], None]) -> _Message:
    """The reply to the next job: its results, or the error that it ended with."""
    channel.recv(1, socket.MSG_PEEK)
    show_time(time.monotonic())  # what comes may kill as it is unpickled

    def job() -> _Message:
        results = []
        for item in receive(channel):
            show_time(time.monotonic())
            results.append(work(item))
        return _Message((True, results))

    message, failure = _try(job)
    return message if failure is None else _Message((False, failure))


def _try(function: Callable[[], Any]) -> tuple[Any, BaseException | _Unbuilt | None]:
    """(value, None), or (None, the error in a form that can be sent); the end of the channel stays an error."""
    try:
        return function(), None
    except _ChannelClosed:
        raise
    except BaseException as error:
        return None, _portable(error)


def _portable(error: BaseException) -> BaseException | _Unbuilt:
    """The error without the frames that it comes from, and all that they hold; a note shows them."""
    note = f"In a worker process:\n{''.join(traceback.format_exception(error)).rstrip()}"
    forms: tuple[Callable[[BaseException], Any], ...] = (lambda error: error, _Unbuilt)
    for form in forms:
        with suppress(Exception):  # classes of libraries raise whatever they like
            copy: BaseException = pickle.loads(pickle.dumps(form(error)))
            copy.add_note(note)
            return form(copy)  # type: ignore[no-any-return]
    plain = EmbarkError(f"{type(error).__name__}: {error}")
    plain.add_note(note)
    return plain


class _Unbuilt:
    """An error whose class takes other arguments than it keeps: it is put together again without them."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self.error), self.error.args, vars(self.error))


def _rebuild(kind: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *args)
    vars(error).update(attributes)
    return error


def _die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends, be it by kill -9."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


# ── messages: a pickle, and beside it the large buffers, in memory that both processes share ─────────────────────────

LENGTH = struct.Struct("<Q")
CLOCK = struct.Struct("<d")
MESSAGE_HEAD = struct.Struct("<?QQ")  # whether it is in shared memory, the number of buffers, bytes in all
ALIGNED = 64
INLINE = 16 << 10  # bytes up to which a message is sent through the channel, whose buffer takes several of them


class _ChannelClosed(EOFError):
    """The process at the other end has closed the channel, or ended."""


class _Message:
    """A value as bytes: a table of sizes, the pickle, and the buffers that it refers to."""

    def __init__(self, value: Any) -> None:
        buffers: list[pickle.PickleBuffer] = []
        data = pickle.dumps(value, 5, buffer_callback=buffers.append)
        pieces = [memoryview(data), *(buffer.raw() for buffer in buffers)]
        table = b"".join(LENGTH.pack(piece.nbytes) for piece in pieces)
        self.pieces = [memoryview(table), *pieces]
        self.places, self.size = _places([piece.nbytes for piece in self.pieces])

    def send(self, channel: socket.socket) -> None:
        shared = self.size > INLINE
        head = MESSAGE_HEAD.pack(shared, len(self.pieces), self.size)
        if not shared:
            body = bytearray(self.size)
            for place, piece in zip(self.places, self.pieces, strict=True):
                body[place : place + piece.nbytes] = piece
            channel.sendall(head + body)
            return
        memory = _memory_file(self.size)
        try:
            for place, piece in zip(self.places, self.pieces, strict=True):
                while piece.nbytes:  # written, not mapped: a system call that lets other threads run
                    count = os.pwrite(memory, piece, place)
                    place += count
                    piece = piece[count:]
            socket.send_fds(channel, [head], [memory])
        finally:
            os.close(memory)


def receive(channel: socket.socket) -> Any:
    """The value of the next message; its arrays are views of memory that is free when they are."""
    head, files, _, _ = socket.recv_fds(channel, MESSAGE_HEAD.size, 1)
    if not head:
        raise _ChannelClosed
    shared, count, size = MESSAGE_HEAD.unpack(head + _exactly(channel, MESSAGE_HEAD.size - len(head)))
    body = _mapped(files[0], size) if shared else memoryview(_exactly(channel, size))
    sizes = [LENGTH.unpack_from(body, LENGTH.size * row)[0] for row in range(count - 1)]
    places, _ = _places([LENGTH.size * (count - 1), *sizes])
    data, *buffers = (body[place : place + nbytes] for place, nbytes in zip(places[1:], sizes, strict=True))
    return pickle.loads(data, buffers=buffers)


def _places(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Where pieces of these sizes begin, one after the other, and the bytes of all."""
    places = []
    end = 0
    for size in sizes:
        places.append(end)
        end += -(-size // ALIGNED) * ALIGNED
    return places, max(end, 1)


def _exactly(channel: socket.socket, size: int) -> bytearray:
    out = bytearray(size)
    view = memoryview(out)
    while view:
        count = channel.recv_into(view)
        if not count:
            raise _ChannelClosed
        view = view[count:]
    return out


def _memory_file(size: int) -> int:
    """A file in memory that has no name: it is gone when nobody holds it any more, also after a kill."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("embark")
    else:
        with tempfile.TemporaryFile() as file:
            number = os.dup(file.fileno())
    os.ftruncate(number, size)
    return number


def _mapped(file: int, size: int) -> memoryview:
    """The bytes of a file in memory, which is closed; a map of Python's own would hold a file each."""
    try:
        address = _map(None, size, mmap.PROT_READ | mmap.PROT_WRITE, MAPPED, file, 0)
    finally:
        os.close(file)
    if address in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(f"{size:,} bytes of shared memory cannot be mapped")
    block = (ctypes.c_ubyte * size).from_address(address)
    weakref.finalize(block, _unmap, address, size).atexit = False
    return memoryview(block).cast("B")


if POSSIBLE:
    _library = ctypes.CDLL(None, use_errno=True)
    _map = _library.mmap
    _map.restype = ctypes.c_void_p
    _map.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    _unmap = _library.munmap
    _unmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    MAPPED = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
