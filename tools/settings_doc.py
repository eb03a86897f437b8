"""Write docs/settings.md from the table of settings, or check with --check that it is up to date.

python tools/settings_doc.py [--check]
"""

from collections.abc import Iterator

import written_page

from geartrain.server.config import load
from geartrain.server.config.settings import TABLE, Setting

PAGE = written_page.DOCS / "settings.md"

OPENING = f"""\
# Settings

<!-- Written by tools/settings_doc.py from src/geartrain/server/config/settings.py; change that instead. -->

A setting can be set in three ways; the first of these wins:

1. a flag of `geartrain serve`: `--max-packet 1MiB`
2. an environment variable: `GEARTRAIN_MAX_PACKET=1MiB`
3. a line of the settings file: `max_packet = "1MiB"`

The settings file is TOML. Its path is the value of `{load.CONFIG_FLAG}` or `{load.CONFIG_VARIABLE}`, else
`~/.config/geartrain/{load.FILE_NAME}` (or in `$XDG_CONFIG_HOME`), else `/etc/geartrain/{load.FILE_NAME}`.
Unknown keys and invalid values are errors; the message says where the value was found and what is allowed.

Sizes are written like `64MiB`, `500kB` or as a number of bytes, times like `1ms`, `60s`, `2h` or as a number of
seconds. A setting that is true or false has two flags, such as `--keepalive` and `--no-keepalive`; in the environment
and in the file its values are `true` and `false`. `--listen` can be repeated; in the environment, separate URLs by
spaces; in TOML it is a list of URLs, or of [tables](operations.md#tls) with the parameters of a URL.

`geartrain gearmand` has gearmand's command line options. Settings that gearmand has no option for still come from the
environment and the settings file.
"""

EXAMPLE = """\
## An example

```toml
# /etc/geartrain/geartrain.toml
listen = ["gearman://127.0.0.1:4730", "gearman://[::1]:4730"]
max_attempts = 5
max_packet = "16MiB"
log_file = "/var/log/geartrain/geartrain.log"
drain_timeout = "5m"
```
"""


def page() -> str:
    """The whole page."""
    groups = dict.fromkeys(setting.group for setting in TABLE.values())
    return "\n".join([OPENING, *(f"{_section(group)}\n" for group in groups), EXAMPLE])


def _section(group: str) -> str:
    rows = [_row(setting) for setting in TABLE.values() if setting.group == group]
    return "\n".join([f"## {group}", "", "| setting | default | description |", "|---|---|---|", *rows])


def _row(setting: Setting) -> str:
    return f"| `{setting.name}` | {_default(setting)} | {' '.join(_description(setting))} |"


def _default(setting: Setting) -> str:
    return setting.empty_means or f"`{setting.shown_default}`"


def _description(setting: Setting) -> Iterator[str]:
    yield setting.help
    if setting.value_type.choices:
        yield f"One of {', '.join(f'`{word}`' for word in setting.value_type.choices)}."


if __name__ == "__main__":
    raise SystemExit(written_page.main(PAGE, page))
