"""The compiled core of a working copy: is it what the sources say?"""

from pathlib import Path

LIBRARY = "native__mypyc.*.so"


def outdated(source: Path) -> list[Path]:
    """Sources that were changed after the core was compiled; none if it is not compiled at all.

    A compiled module only leads into a library that has the code of many, so it is the libraries' time that counts.
    """
    libraries = [path.stat().st_mtime for path in source.rglob(LIBRARY)]
    if not libraries:
        return []
    leads = (path for path in source.rglob("*.so") if not path.match(LIBRARY))
    modules = (path.parent / f"{path.name.partition('.')[0]}.py" for path in leads)
    return sorted(path for path in modules if path.exists() and path.stat().st_mtime > min(libraries))
