"""The files that `make deb` makes a Debian package of. The workflow of the tests builds it, which takes minutes."""

import configparser
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from geartrain.server.config import load

ROOT = Path(__file__).parents[2]
DEBIAN = ROOT / "deploy" / "debian"


def fields(paragraph: str) -> dict[str, str]:
    """A paragraph of a control file."""
    found = re.findall(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", paragraph, re.MULTILINE)
    return {name: value.strip() for name, value in found}


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = re.match(r"(\S+) \((\S+)\)", (DEBIAN / "changelog").read_text()).groups()  # type: ignore[union-attr]
    assert (name, version) == (project["name"], project["version"])


def test_control_has_a_source_and_a_package() -> None:
    source, package = map(fields, (DEBIAN / "control").read_text().split("\n\n"))
    assert {"Source", "Maintainer", "Build-Depends", "Standards-Version"} <= set(source)
    assert package["Package"] == source["Source"] == "geartrain"
    assert package["Architecture"] == "any"  # the core is compiled
    assert {"${misc:Depends}", "${python:Depends}", "${shlibs:Depends}"} <= set(package["Depends"].split(", "))


@pytest.mark.skipif(shutil.which("dpkg-parsechangelog") is None, reason="needs dpkg-dev")
def test_dpkg_reads_the_changelog() -> None:
    command = ["dpkg-parsechangelog", "--file", str(DEBIAN / "changelog"), "--all"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert said.stderr == ""


def test_rules_can_be_run_and_use_files_that_exist() -> None:
    assert os.access(DEBIAN / "rules", os.X_OK)
    rules = (DEBIAN / "rules").read_text()
    used = set(re.findall(r"\b(?:deploy|tools)/[\w./]+", rules)) | {
        f"deploy/{name}" for name in re.findall(r"install -D -m 644 (debian/\S+)", rules)
    }
    assert {"deploy/geartrain.service", "deploy/geartrain.logrotate", "deploy/debian/geartrain.toml"} <= used
    assert [name for name in used if not (ROOT / name).exists()] == []


def test_the_settings_file_is_accepted_and_so_are_its_examples(tmp_path: Path) -> None:
    text = (DEBIAN / "geartrain.toml").read_text()
    assert tomllib.loads(text) == {}
    examples = "\n".join(line.removeprefix("# ") for line in text.splitlines() if re.match(r"# \w+ = ", line))
    file = tmp_path / "geartrain.toml"
    file.write_text(examples)
    settings = load.load({"config": file}, {})
    assert [str(address) for address in settings.listen] == tomllib.loads(examples)["listen"]


def test_the_service_runs_as_the_user_that_the_package_makes() -> None:
    unit = configparser.ConfigParser(strict=False)
    unit.read(DEBIAN / "debian.conf")
    kind, user, *_ = (DEBIAN / "geartrain.sysusers").read_text().split()
    assert (kind, user) == ("u", unit["Service"]["User"])


def test_jobs_are_removed_by_purge_only() -> None:
    script = DEBIAN / "geartrain.postrm"
    subprocess.run(["sh", "-n", str(script)], check=True)
    guarded = re.search(r'if \[ "\$1" = purge \]; then\n(.*)\nfi', script.read_text(), re.DOTALL)
    assert guarded is not None
    assert script.read_text().count("rm -rf") == guarded[1].count("rm -rf") == 1
