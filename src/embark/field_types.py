"""Fields of dataclasses and arguments of functions: their types, which what others state is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from embark.types import EmbarkError

P = ParamSpec("P")
R = TypeVar("R")
LISTS = (Iterable, Sequence, list)
PLAIN = (str, int, float, bool, NoneType, Path)
NOUNS = {str: "text", int: "whole number", float: "number", Callable: "function"}


def defaults(dataclass: type) -> dict[str, Any]:
    """The default of each field by name; MISSING where it has none."""
    return {
        spec.name: spec.default if spec.default_factory is MISSING else spec.default_factory()
        for spec in fields(dataclass)
    }


def stated_fields(value: Any, usual: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The fields that differ from their defaults, or from what is usual instead."""
    expected = {**defaults(value.__class__), **(usual or {})}
    return {name: getattr(value, name) for name in expected if getattr(value, name) != expected[name]}


def misfits(value: Any) -> Iterator[str]:
    """A message for each field whose value is not of its type."""
    for name, kind in field_types(value.__class__).items():
        if not fits(stated := getattr(value, name), kind):
            yield f"its `{name}` must be {words(kind)}, not {stated!r}"


@cache
def field_types(dataclass: type) -> dict[str, Any]:
    """The types of the fields by name; a type that only type checkers import (TYPE_CHECKING) stands for any."""
    types = _hints(dataclass)
    return {spec.name: types[spec.name] for spec in fields(dataclass)}


def _hints(annotated: Any) -> dict[str, Any]:
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(annotated, localns=unknown)
        except NameError as error:
            unknown[str(error.name)] = Any


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """A function that refuses arguments of another type than its annotations state.

    Only types of plain values and of dataclasses are checked, and lists of them: whatever embeds is a model.
    """
    kinds: dict[str, Any] = {}

    @wraps(function)
    def call(*arguments: P.args, **options: P.kwargs) -> R:
        parameters = signature(function)
        if not kinds:
            several = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
            hints = _hints(function)
            single = [name for name, parameter in parameters.parameters.items() if parameter.kind not in several]
            kinds.update({name: hints[name] for name in single if name in hints and _is_plain(hints[name])})
        for name, value in parameters.bind(*arguments, **options).arguments.items():
            if name in kinds and not fits(value, kinds[name]):
                raise EmbarkError(f"`{name}` of {function.__name__} must be {words(kinds[name])}, not {value!r:.100}.")
        return function(*arguments, **options)

    return call


def _is_plain(kind: Any) -> bool:
    """Whether a type is of plain values, of dataclasses, or of lists of these; words to choose from are not, as the
    functions themselves suggest the nearest one.
    """
    if get_origin(kind) in (Union, UnionType, *LISTS):
        return all(map(_is_plain, get_args(kind)))
    return kind in PLAIN or is_dataclass(kind)


def fits(value: object, kind: Any) -> bool:
    """Whether a value is of a type, and what it holds of the types within.

    A whole number is a number, true is none. Numbers of NumPy are numbers, too.
    """
    outer, inner = get_origin(kind), get_args(kind)
    if outer in (Union, UnionType):
        return any(fits(value, part) for part in inner)
    if outer is Literal:
        return value in inner
    if outer is tuple:
        return isinstance(value, tuple) and all(fits(member, inner[0]) for member in value)
    if outer is Mapping:
        return isinstance(value, Mapping) and all(fits(v, inner[1]) and fits(k, inner[0]) for k, v in value.items())
    if outer is type:
        return isinstance(value, type) and issubclass(value, inner[0])
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return kind is Any or isinstance(value, outer or kind)


def words(kind: Any, several: bool = False) -> str:
    """A type in words, as "a text", "a table of whole numbers", "cosine or dot"; `several`: as "texts"."""
    outer, inner = get_origin(kind), get_args(kind)
    article, ending = ("", "s") if several else ("a ", "")
    if outer in (Union, UnionType):
        return " or ".join(words(part, several) for part in inner if part is not NoneType)
    if outer is Literal:
        return " or ".join([", ".join(inner[:-1]), inner[-1]])
    if outer is tuple:
        return f"{article}tuple{ending} of {words(inner[0], True)}"
    if outer in LISTS:
        return f"{article}list{ending} of {words(inner[0], True)}"
    if outer is type:
        return f"{article}type{ending} ({', '.join(part.__name__ for part in get_args(inner[0]) or inner)})"
    if outer is Mapping:
        return f"{article}table{ending}" + ("" if inner[1] is Any else f" of {words(inner[1], True)}")
    if kind is bool:
        return "true or false"
    return f"{article}{NOUNS.get(outer or kind, kind.__name__)}{ending}"
