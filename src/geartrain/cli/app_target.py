"""Find the App that `geartrain work package.module:app` names, or say what is wrong with the name."""

import importlib
import importlib.util
import os
import sys
import traceback
from types import ModuleType

from geartrain.app.app import App
from geartrain.errors import AppError


def load(target: str) -> App:
    """Import the module and return its App."""
    module_name, _, path = target.partition(":")
    if not module_name or not path:
        raise AppError(f"{target!r} does not name an App; write module:app, for example shop.tasks:app")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module = _import(target, module_name)
    found: object = module
    for name in path.split("."):
        if not hasattr(found, name):
            raise AppError(f"{target}: module {module_name!r} has no {path!r}{_hint(module)}")
        found = getattr(found, name)
    if not isinstance(found, App):
        raise AppError(f"{target}: {path!r} is a {type(found).__name__}, not a geartrain.App{_hint(module)}")
    return found


def _import(target: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            place = f"{error.name!r} is not in {os.getcwd()} and not installed"
            raise AppError(f"{target}: no module {name!r}: {place}") from None
        raise AppError(f"{target}: cannot import {name!r}:\n{_traceback(error)}") from None
    except Exception as error:
        raise AppError(f"{target}: cannot import {name!r}:\n{_traceback(error)}") from None


def _traceback(error: Exception) -> str:
    """The traceback from the user's own module on."""
    frames = error.__traceback__
    while frames is not None and _is_ours(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()


def _is_ours(file: str) -> bool:
    return file == __file__ or "importlib" in file


def _hint(module: ModuleType) -> str:
    apps = sorted(name for name, value in vars(module).items() if isinstance(value, App))
    return f"; its apps: {', '.join(apps)}" if apps else "; it has no App"
