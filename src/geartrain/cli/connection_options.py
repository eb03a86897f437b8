"""The options of every command that connects to a server: the files for TLS, and the file with a token.

Those for TLS are the library's environment variables, spelled as options: each is set in the environment before the
command runs, so that whatever connects finds it there. The token is not: commands that `geartrain work` runs would
inherit it.
"""

import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from geartrain.cli.parameters import option
from geartrain.client import credentials, tls

TLS_PANEL: Final = "TLS, for URLs such as gearmans://"
TOKEN_PANEL: Final = "Token, for servers with users"

# Parameters with the URL of a server; what has one of them connects to it.
_CONNECTING: Final = frozenset({"server", "new"})


def _option(name: str, help: str, panel: str) -> Any:
    return Annotated[str, option(name, metavar="FILE", help=help, show_default=False, panel=panel)]


def secret_option(help: str) -> Any:
    """The option for a file with the secret of one more server that a command connects to."""
    return option(metavar="FILE", help=help, show_default=False, panel=TOKEN_PANEL)


def read_secret(file: Path | None) -> str:
    """What is in the file of such an option; empty without one."""
    return credentials.read_file(str(file)) if file is not None else ""


def _set_variable(variable: str) -> Callable[[str], None]:
    def set_variable(path: str) -> None:
        os.environ[variable] = path

    return set_variable


# By parameter: the option, and what is done with its value.
OPTIONS: Final[dict[str, tuple[Any, Callable[[str], None]]]] = {
    "token_file": (
        _option(
            "--token-file",
            f"Send the token in this file. [env: {credentials.VARIABLE} has the token, {credentials.FILE_VARIABLE} the "
            "name of a file]",
            TOKEN_PANEL,
        ),
        credentials.use_file,
    ),
    "tls_ca": (
        _option(
            "--tls-ca", f"Trust these authorities instead of the machine's (PEM). [env: {tls.CA_VARIABLE}]", TLS_PANEL
        ),
        _set_variable(tls.CA_VARIABLE),
    ),
    "tls_certificate": (
        _option("--tls-certificate", f"Present this certificate (PEM). [env: {tls.CERTIFICATE_VARIABLE}]", TLS_PANEL),
        _set_variable(tls.CERTIFICATE_VARIABLE),
    ),
    "tls_key": (
        _option("--tls-key", f"The certificate's private key (PEM). [env: {tls.KEY_VARIABLE}]", TLS_PANEL),
        _set_variable(tls.KEY_VARIABLE),
    ),
}


def extended(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A verb's function with the options, if it connects to a server; else the function itself."""
    if not _CONNECTING & inspect.signature(callback).parameters.keys():
        return callback

    @functools.wraps(callback)
    def execute(**values: Any) -> Any:
        for name, (_, use) in OPTIONS.items():
            path = values.pop(name)
            if path:
                use(path)
        return callback(**values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter.replace(kind=keyword) for parameter in inspect.signature(callback).parameters.values()]
    parameters += [inspect.Parameter(name, keyword, default="", annotation=OPTIONS[name][0]) for name in OPTIONS]
    execute.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    execute.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return execute
