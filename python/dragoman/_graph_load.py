"""Finds and loads the graph that a specification names: `path/to/file.py:attribute` or `package.module:attribute`.

The attribute is a compiled graph, a StateGraph, or a function that returns one of them: without arguments or with the config,
async or not, or a context manager. A function is called once, when the worker starts; a context manager is left when it ends.
"""
from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from types import ModuleType
from typing import Any, Dict, List, Optional, Set, Tuple

from .worker import LoadError


def prepare_path(cwd: str, dependencies: List[str]) -> None:
    """The project's folder, and its local dependencies, come first in sys.path. Nothing is installed."""
    folders = [cwd, *(os.path.normpath(os.path.join(cwd, d)) for d in dependencies)]
    for folder in reversed([f for f in folders if os.path.isdir(f)]):
        if folder not in sys.path:
            sys.path.insert(0, folder)


# ---- the module -------------------------------------------------------------------------------------

def split_spec(name: str, spec: str) -> Tuple[str, str]:
    path, colon, attribute = spec.rpartition(":")
    if not colon or not path or not attribute.isidentifier():
        raise LoadError(f'graph {name}: invalid path "{spec}": expected path/to/file.py:attribute or package.module:attribute')
    return path, attribute


def _dotted_name(file: str) -> Optional[str]:
    """The name under which a file can be imported: it is at the top of a folder of sys.path, or in a package there."""
    folder, stem = os.path.split(file[: -len(".py")])
    names = [stem]
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    is_importable = folder in sys.path and all(n.isidentifier() for n in names)
    return ".".join(names) if is_importable else None


def _is_file_of(module: Optional[ModuleType], file: str) -> bool:
    origin = getattr(module, "__file__", None)
    return origin is not None and os.path.realpath(origin) == os.path.realpath(file)


def _import_file(file: str) -> ModuleType:
    dotted = _dotted_name(file)
    if dotted and (dotted not in sys.modules or _is_file_of(sys.modules[dotted], file)):
        module = importlib.import_module(dotted)  # relative imports work
        if _is_file_of(module, file):
            return module
    folder = os.path.dirname(file)
    if folder not in sys.path:
        sys.path.append(folder)  # last: the file can import its neighbours, and they hide nothing
    # The name is the same in every process: the serializer stores the modules of classes.
    relative = os.path.relpath(file).encode("utf-8", "surrogateescape")
    stem = os.path.splitext(os.path.basename(file))[0]
    name = f"dragoman_graph_{stem if stem.isidentifier() else 'file'}_{hashlib.sha256(relative).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, file)
    if found is None or found.loader is None:
        raise LoadError(f"cannot import {file}: expected a Python file")
    made = importlib.util.module_from_spec(found)
    sys.modules[name] = made
    try:
        found.loader.exec_module(made)
    except BaseException:
        del sys.modules[name]
        raise
    return made


def load_module(name: str, path: str, cwd: str) -> ModuleType:
    if path.endswith(".py") or "/" in path or os.sep in path:
        file = os.path.normpath(os.path.join(cwd, path))
        if not os.path.isfile(file):
            raise LoadError(f"graph {name}: there is no file {file}")
        try:
            return _import_file(file)
        except ModuleNotFoundError as e:
            raise LoadError(_missing(name, e, file)) from e
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as e:
        if e.name and (path == e.name or path.startswith(e.name + ".")):
            raise LoadError(f"graph {name}: there is no module {path}; the project's folder is {cwd}") from e
        found = importlib.util.find_spec(path)
        raise LoadError(_missing(name, e, found.origin if found else None)) from e


def _imports_of(file: Optional[str]) -> Set[str]:
    """The packages that a file imports at its top."""
    if not file:
        return set()
    try:
        with open(file, "rb") as f:
            tree = ast.parse(f.read())
    except (OSError, SyntaxError, ValueError):
        return set()
    names: Set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names.update(a.name.split(".")[0] for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def _is_missing(package: str) -> bool:
    try:
        return package not in sys.modules and importlib.util.find_spec(package) is None
    except (ImportError, ValueError):
        return False


def _missing(name: str, error: ModuleNotFoundError, file: Optional[str]) -> str:
    """All packages that are missing at once: whoever installs one would only see the next."""
    first = (error.name or str(error)).split(".")[0]
    if not _is_missing(first):  # a module of a package that is there
        return f"graph {name}: missing module {error.name}"
    packages = sorted({first, *(p for p in _imports_of(file) if _is_missing(p))})
    install = " ".join(p.replace("_", "-") for p in packages)
    return (f"graph {name}: missing {'package' if len(packages) == 1 else 'packages'} {', '.join(packages)}: install "
            f"{'it' if len(packages) == 1 else 'them'} for this interpreter, for example with {sys.executable} -m pip install {install}")


# ---- the graph --------------------------------------------------------------------------------------

def _is_compiled(value: Any) -> bool:
    return hasattr(value, "astream") and hasattr(value, "aget_state") and hasattr(value, "channels") and not isinstance(value, type)


def _is_builder(value: Any) -> bool:
    return hasattr(value, "compile") and hasattr(value, "add_node") and not isinstance(value, type)


def _call(name: str, factory: Any, config: Dict[str, Any]) -> Any:
    """With the config if it has an argument for it."""
    try:
        parameters = [p for p in inspect.signature(factory).parameters.values()
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
        optional = [p for p in inspect.signature(factory).parameters.values()
                    if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is not p.empty and p.name == "config"]
    except (TypeError, ValueError):
        parameters, optional = [], []
    if len(parameters) > 1:
        raise LoadError(f"graph {name}: expected a function with no argument or one (the config), got {len(parameters)}: "
                        f"{', '.join(p.name for p in parameters)}")
    return factory(config) if parameters or optional else factory()


async def resolve(name: str, value: Any, config: Dict[str, Any], stack: contextlib.AsyncExitStack) -> Any:
    """The compiled graph of what the attribute is. `stack` leaves context managers when the worker ends."""
    for _ in range(4):  # a function that returns a coroutine that returns a StateGraph
        if _is_compiled(value):
            return value
        if _is_builder(value):
            value = value.compile()
        elif hasattr(value, "graph") and _is_compiled(value.graph):
            value = value.graph
        elif inspect.isawaitable(value):
            value = await value
        elif hasattr(value, "__aenter__"):
            value = await stack.enter_async_context(value)
        elif hasattr(value, "__enter__") and hasattr(value, "__exit__"):
            value = stack.enter_context(value)
        elif inspect.isasyncgen(value):
            value = await stack.enter_async_context(contextlib.asynccontextmanager(lambda made=value: made)())
        elif callable(value):
            value = _call(name, value, config)
        else:
            break
    if _is_compiled(value):
        return value
    raise LoadError(f"graph {name}: expected a compiled graph, a StateGraph or a function that returns one, got {type(value).__name__}")


async def load_graph(name: str, spec: str, cwd: str, config: Dict[str, Any], stack: contextlib.AsyncExitStack) -> Any:
    path, attribute = split_spec(name, spec)
    module = load_module(name, path, cwd)
    try:
        value = getattr(module, attribute)
    except AttributeError:
        names = [n for n, v in vars(module).items() if _is_compiled(v) or _is_builder(v)]
        hint = f"; graphs in it: {', '.join(names)}" if names else ""
        raise LoadError(f"graph {name}: {path} has no attribute {attribute}{hint}") from None
    return await resolve(name, value, config, stack)
