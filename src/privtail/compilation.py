"""The one way privtail compiles: at the first call, cached on disk where that is possible."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from privtail.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")
R = TypeVar("R")


_HERE = threading.local()


@contextlib.contextmanager
def interpreted(on: bool = True) -> Iterator[None]:
    """In this thread run functions of ours as the plain Python that they are: for few numbers.

    Numba takes .1 GB, which a process that sums no rows can do without. Functions that are made at
    run time (``cache=False``) are compiled all the same: somebody else's may need it. So are those
    of the core, and all that it calls on rows (``on=False``): nobody else decides how these run.
    """
    import numpy as np

    before, _HERE.interpreted = getattr(_HERE, "interpreted", False), on
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _HERE.interpreted = before


class Compiled(Generic[P, R]):
    """A function that Numba compiles at its first call, once per types of arguments.

    ``nogil``, ``error_model="numpy"``, no fast-math: every operation is the IEEE one that is
    written, in the order that is written. Many threads may call it, other compiled functions may
    call it, and it is pickled by name.

    The machine code is kept on disk: in ``__pycache__``, else in the user's cache directory, and
    is made anew when a file of the function, or of what it calls, has changed. It stays in memory
    where neither can be written.
    """

    def __init__(
        self, function: Callable[P, R], *, cache: bool, boundscheck: bool, inline: bool
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._cache = cache
        self._core = _of_the_core(function.__module__)
        self._options = {"boundscheck": boundscheck or None, "forceinline": inline}
        self._dispatcher: Any = None
        self._lock = threading.Lock()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self._cache and not self._core and getattr(_HERE, "interpreted", False):
            return self.function(*args, **kwargs)
        dispatcher: Callable[P, R] = self._dispatcher or self.dispatcher
        return dispatcher(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.function.__qualname__

    @property
    def dispatcher(self) -> Any:
        """Numba's own object, made at first use; making it compiles nothing yet."""
        with self._lock:
            if self._dispatcher is None:
                self._dispatcher = self._jit()
            return self._dispatcher

    @property
    def cached(self) -> bool:
        """Whether the machine code may be kept on disk."""
        return self._cache and all(callee.cached for callee in self._callees())

    @property
    def sources(self) -> frozenset[str]:
        """The files of this function and of the compiled functions that it calls."""
        own = self.function.__code__.co_filename
        return frozenset({own}).union(*(callee.sources for callee in self._callees()))

    def _callees(self) -> list[Compiled[..., Any] | Intrinsic]:
        seen = inspect.getclosurevars(self.function)
        return [
            v
            for v in {**seen.globals, **seen.nonlocals}.values()
            if isinstance(v, Compiled | Intrinsic) and v is not self
        ]

    def _jit(self) -> Any:
        jit = functools.partial(_numba().njit, nogil=True, error_model="numpy", **self._options)
        if self.cached and all(Path(source).is_file() for source in self.sources):
            try:
                dispatcher = jit(cache=True)(self.function)
            except RuntimeError as error:
                if "no locator available" not in str(error):
                    raise
            else:
                return _survive_disk(_watch(dispatcher, self.sources))
        return jit()(self.function)


def _of_the_core(module: str) -> bool:
    """Whether code runs on rows alone; the loops of losses run on few public numbers too."""
    return module.startswith("privtail.trusted.") and "losses" not in module.split(".")


def _watch(dispatcher: Any, sources: frozenset[str]) -> Any:
    """Code on disk is stale once any of these files has changed; Numba looks at the first alone."""
    if len(sources) > 1:
        changes = [(name, Path(name).stat().st_mtime_ns) for name in sorted(sources)]
        dispatcher._cache._cache_file._source_stamp = changes  # noqa: SLF001
    return dispatcher


def _survive_disk(dispatcher: Any) -> Any:
    """On a full disk code stays in memory; what a damaged cache cannot give is compiled again."""
    cache = dispatcher._cache  # noqa: SLF001  Numba has no other door
    save, load = cache.save_overload, cache.load_overload

    def save_overload(signature: Any, result: Any) -> None:
        with contextlib.suppress(Exception):
            save(signature, result)

    def load_overload(signature: Any, target: Any) -> Any:
        try:
            return load(signature, target)
        except Exception:  # noqa: BLE001  a damaged pickle may raise anything
            with contextlib.suppress(OSError):
                cache.flush()
            return None

    cache.save_overload, cache.load_overload = save_overload, load_overload
    return dispatcher


@functools.cache
def _numba() -> Any:
    import numba
    from numba.extending import typeof_impl

    if getattr(numba.config, "DISABLE_JIT", 0):
        raise InvalidInput(
            "Numba's compiler is switched off by NUMBA_DISABLE_JIT, and sums are exact in compiled "
            "code alone. Start Python without this variable: unset NUMBA_DISABLE_JIT."
        )

    @typeof_impl.register(Compiled)
    def _(value: Compiled[..., Any], context: Any) -> Any:
        return typeof_impl(value.dispatcher, context)

    @typeof_impl.register(Intrinsic)
    def _(value: Intrinsic, context: Any) -> Any:
        return value.type

    return numba


class Intrinsic:
    """A function for compiled code alone, written in LLVM's own instructions (`intrinsic`)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__doc__ = function.__doc__
        self.function = function
        self.cached, self.sources = True, frozenset({function.__code__.co_filename})

    @functools.cached_property
    def type(self) -> Any:
        """Its type in Numba, which is imported here and not before."""
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        made = intrinsic(self.function)
        cpu_target.typing_context.refresh()
        cpu_target.target_context.refresh()
        return cpu_target.typing_context.resolve_value_type(made)


def intrinsic(function: Callable[..., Any]) -> Any:
    """`numba.extending.intrinsic` that imports Numba when it is first compiled."""
    return Intrinsic(function)


def steady(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that it computes alike whatever error state NumPy or SciPy was set to.

    Under a caller's ``np.seterr(all="raise")``, or that of ``scipy.special``, an underflow of ours,
    or of a record, would end a fit. Their warnings are not shown: one of them may tell of a record,
    and whoever makes warnings errors would pay for a release and not get it.
    """

    @functools.wraps(function)
    def under_usual_errors(*args: P.args, **kwargs: P.kwargs) -> R:
        import numpy as np
        from scipy import special

        with np.errstate(all="ignore"), special.errstate(all="ignore"):  # type: ignore[arg-type]
            return function(*args, **kwargs)

    return under_usual_errors


class _Quiet:
    """A context in which no warning is shown.

    Filters of warnings belong to the process: the first thread that enters changes them, and the
    last one that leaves restores them.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._kept: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._kept = warnings.catch_warnings(record=True)
                self._kept.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._kept.__exit__(None, None, None)


QUIET = _Quiet()
"""Around calls of code that is not ours: what it warns of may tell of a record."""


def apart(call: Callable[[], R]) -> R:
    """What ``call`` gives, made in another thread than the main one: for code that is not ours.

    Python hands Ctrl-C to the main thread alone, which waits here and can be interrupted. So a
    KeyboardInterrupt that ends ``call`` is of the code that is called (see `by_hand`).
    """
    if not by_hand():
        return call()
    answers: list[R] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as error:  # noqa: BLE001  raised again below
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread can be started
        return call()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]


def by_hand() -> bool:
    """Whether an interrupt that is raised here may be Ctrl-C."""
    return threading.current_thread() is threading.main_thread()


@overload
def compiled(
    function: Callable[P, R], *, cache: bool = ..., boundscheck: bool = ..., inline: bool = ...
) -> Compiled[P, R]: ...


@overload
def compiled(
    function: None = ..., *, cache: bool = ..., boundscheck: bool = ..., inline: bool = ...
) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...


def compiled(
    function: Any = None, *, cache: bool = True, boundscheck: bool = False, inline: bool = False
) -> Any:
    """Decorate a function so that Numba compiles it when it is first called.

    ``cache=False`` keeps the machine code in memory: for functions made at run time.
    ``boundscheck=True`` raises `IndexError` at an index out of range: for code that is not ours.
    ``inline=True`` puts its code into that of compiled functions that call it: for few operations.
    """
    make = functools.partial(Compiled, cache=cache, boundscheck=boundscheck, inline=inline)
    return make if function is None else make(function)
