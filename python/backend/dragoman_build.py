"""Builds the wheel (PEP 517): the package's files, libdragoman.so, libdragoman-agent.so and the extension module, zipped. Needs nothing
but Python.

The libraries are DRAGOMAN_LIB, if that is set, and those beside it; else those of build/ in the tree (`make`); else meson
and ninja build them. A wheel without libdragoman-agent.so has everything but AgentLoop. A wheel without the extension module
(no headers of Python when it was built) uses ctypes, which takes longer.
"""
import base64
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREE = os.path.dirname(HERE)
BESIDE = ("libdragoman-agent.so", "_native.abi3.so")  # where the library is
NEWEST = "dgm_values_convert"  # a library without it is older than this package


def _version():
    with open(os.path.join(TREE, "meson.build"), encoding="utf-8") as f:
        return re.search(r"version: '([^']+)'", f.read())[1]


# ---- the library -----------------------------------------------------------------------------------

def _is_good(path):
    try:
        return hasattr(ctypes.CDLL(path), NEWEST)
    except OSError:
        return False


def _built_here(folder):
    """meson and ninja, in a folder of our own: build/ belongs to make."""
    for tool in ("meson", "ninja"):
        if not shutil.which(tool):
            sys.exit(f"dragoman: there is no build/libdragoman.so in {TREE}, and no {tool} to build one. "
                     "Run `make` there first, or name a library: DRAGOMAN_LIB=/path/to/libdragoman.so")
    targets = ["dragoman:shared_library", "dragoman-agent:shared_library"]
    for command in (["meson", "setup", folder, TREE, "-Db_lto=true"], ["meson", "compile", "-C", folder, *targets]):
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if p.returncode:
            sys.exit(f"dragoman: {' '.join(command)} failed:\n{p.stdout[-4000:]}\n"
                     f"`make` in {TREE} installs what it needs, or says what is missing.")
    # fails if there are no headers of Python
    subprocess.run(["meson", "compile", "-C", folder, "_native:shared_module"], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return os.path.join(folder, "libdragoman.so")


def _library(folder):
    named = os.environ.get("DRAGOMAN_LIB")
    if named:
        if not _is_good(named):
            sys.exit(f"dragoman: DRAGOMAN_LIB={named} is no libdragoman.so of this version")
        return named
    made = os.path.join(TREE, "build", "libdragoman.so")
    return made if _is_good(made) else _built_here(folder)


# ---- the wheel -------------------------------------------------------------------------------------

def _read(path):
    with open(path, "rb") as f:
        return f.read()


def _metadata():
    return (f"Metadata-Version: 2.1\nName: dragoman\nVersion: {_version()}\n"
            "Summary: Translates between agent protocols: A2A, AG-UI, OpenAI Chat Completions and Responses, and more\n"
            "License: MIT\nRequires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n").encode() + \
        _read(os.path.join(HERE, "README.md"))


def _wheel(folder, files, tag):
    """files: name in the wheel -> bytes"""
    name = f"dragoman-{_version()}"
    info = f"{name}.dist-info"
    files = {**files, f"{info}/METADATA": _metadata(), f"{info}/LICENSE": _read(os.path.join(TREE, "LICENSE")),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: dragoman_build\nRoot-Is-Purelib: false\nTag: {tag}\n"
             .encode()}
    record = ""
    with zipfile.ZipFile(os.path.join(folder, f"{name}-{tag}.whl"), "w", zipfile.ZIP_DEFLATED) as z:
        for path, content in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"
            z.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), content)
        z.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0)), record + f"{info}/RECORD,,\n")
    return f"{name}-{tag}.whl"


def _tag():
    return "py3-none-" + re.sub(r"[-.]", "_", sysconfig.get_platform())


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = os.path.join(HERE, "dragoman")
    files = {f"dragoman/{f}": _read(os.path.join(package, f)) for f in sorted(os.listdir(package))
             if f.endswith(".py") or f == "py.typed"}
    # aion is a namespace package: an aion/__init__.py here would hide those of another package
    aion = os.path.join(HERE, "aion", "langgraph")
    files.update({f"aion/langgraph/{f}": _read(os.path.join(aion, f)) for f in sorted(os.listdir(aion)) if f.endswith(".py")})
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        library = _library(folder)
        files["dragoman/libdragoman.so"] = _read(library)
        for name in BESIDE:
            path = os.path.join(os.path.dirname(library), name)
            if os.path.exists(path):
                files[f"dragoman/{name}"] = _read(path)
    return _wheel(wheel_directory, files, _tag())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package stays where it is, and finds build/libdragoman.so of its tree."""
    return _wheel(wheel_directory, {"dragoman.pth": (HERE + "\n").encode()}, "py3-none-any")


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("dragoman: there is no source package: the library is built from the whole tree. Install from there "
             "(`pip install ./python`), or build a wheel (`pip wheel ./python`)")
