"""The files in deploy, the Containerfile and the workflows: a server starts as they say, and they name what there is.

Images are not built here. The server that an image or a pod would run is, with other ports and another folder.
"""

import json
import re
import signal
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from geartrain.server.config import settings
from tests.support import serving

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "Containerfile").read_text()
COMPOSE_FOLDER = ROOT / "deploy" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((COMPOSE_FOLDER / "compose.yaml").read_text())
MANIFESTS: dict[str, Any] = {
    manifest["kind"]: manifest
    for manifest in yaml.safe_load_all((ROOT / "deploy/kubernetes/geartrain.yaml").read_text())
}
POD: dict[str, Any] = MANIFESTS["StatefulSet"]["spec"]["template"]
CONTAINER: dict[str, Any] = POD["spec"]["containers"][0]
STORE_FOLDER = "/var/lib/geartrain"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def instruction(name: str) -> str:
    """The last instruction of this name in the Containerfile, on one line."""
    return re.findall(rf"^{name} (.*)$", CONTAINERFILE.replace("\\\n", ""), re.MULTILINE)[-1]


def on_free_ports(text: str, home: Path) -> str:
    """Settings or arguments of a container, with free ports and a folder of the test."""
    return re.sub(r"(?<=0\.0\.0\.0):\d+", ":0", text).replace(STORE_FOLDER, str(home))


@pytest.fixture(params=["image", "pod"])
def server(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of HTTP at a server that was started as in a container; at the end it gets the image's signal to stop."""
    if request.param == "image":
        verb, *arguments = json.loads(on_free_ports(instruction("CMD"), tmp_path))
        for name, value in re.findall(rf"({settings.PREFIX}\w+)=(\S+)", on_free_ports(instruction("ENV"), tmp_path)):
            arguments.append(f"--{name.removeprefix(settings.PREFIX).lower().replace('_', '-')}={value}")
    else:
        file = tmp_path / "geartrain.toml"
        file.write_text(on_free_ports(MANIFESTS["ConfigMap"]["data"][file.name], tmp_path))
        verb, *arguments = (str(file) if word.endswith(file.name) else word for word in CONTAINER["args"])
    assert verb == "serve"
    with serving.serve(*arguments, doors=2) as process:
        [url] = [url for url in process.urls if url.startswith("http:")]
        yield f"http://{serving.HOST}:{url.rpartition(':')[2]}"
        process.signal(signal.Signals[instruction("STOPSIGNAL")])
        assert process.wait() == 0, process.account()
        assert (tmp_path / "jobs.db").exists()


def status_of(url: str, data: bytes | None = None) -> int:
    try:
        with urllib.request.urlopen(url, data, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_container_is_ready_is_measured_and_takes_jobs_but_no_commands(server: str) -> None:
    probes = {CONTAINER[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")}
    health = re.findall(r"http://127\.0\.0\.1:4780(/\w+)", instruction("HEALTHCHECK.*") + CONTAINERFILE)
    for path in {*probes, *health, "/metrics", "/"}:
        assert status_of(server + path) == 200, path
    assert status_of(f"{server}/api/v1/functions/report/pause", b"") == 403


def test_the_ports_of_the_containers_are_those_of_the_server() -> None:
    listening = set(re.findall(r"0\.0\.0\.0:(\d+)", instruction("CMD")))
    assert set(instruction("EXPOSE").split()) == listening
    assert {str(port["containerPort"]) for port in CONTAINER["ports"]} == listening
    assert set(re.findall(r"0\.0\.0\.0:(\d+)", MANIFESTS["ConfigMap"]["data"]["geartrain.toml"])) == listening
    assert {port.rpartition(":")[2] for port in COMPOSE["services"]["geartrain"]["ports"]} == listening
    assert POD["metadata"]["annotations"]["prometheus.io/port"] in listening


def test_variables_are_settings_and_pods_clear_those_of_the_image() -> None:
    known = {f"{settings.PREFIX}{name.upper()}" for name in settings.Settings.__dataclass_fields__}
    of_the_image = set(re.findall(rf"{settings.PREFIX}\w+", instruction("ENV")))
    assert of_the_image <= known
    assert {variable["name"]: variable["value"] for variable in CONTAINER["env"]} == dict.fromkeys(of_the_image, "")


def test_a_stop_has_more_time_than_running_jobs() -> None:
    [drain] = re.findall(r"DRAIN_TIMEOUT=(\d+)s", instruction("ENV"))
    assert int(drain) < int(COMPOSE["services"]["geartrain"]["stop_grace_period"].removesuffix("s"))
    in_the_pod = tomllib.loads(MANIFESTS["ConfigMap"]["data"]["geartrain.toml"])["drain_timeout"]
    assert int(in_the_pod.removesuffix("s")) < POD["spec"]["terminationGracePeriodSeconds"]


def test_the_compose_file_names_what_there_is() -> None:
    for service in COMPOSE["services"].values():
        for mount in service.get("volumes", ()):
            source = mount.partition(":")[0]
            assert (COMPOSE_FOLDER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], mount
    [job] = yaml.safe_load((COMPOSE_FOLDER / "prometheus.yml").read_text())["scrape_configs"]
    assert job["dns_sd_configs"][0]["names"] == ["geartrain"]
    [source] = yaml.safe_load((COMPOSE_FOLDER / "grafana/datasource.yaml").read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert {"geartrain", "prometheus", "grafana"} == set(COMPOSE["services"])


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows" / f"{name}.yml").read_text())
    return loaded


def test_every_version_of_python_that_is_named_is_tested_and_has_a_wheel() -> None:
    prefix = "Programming Language :: Python :: 3."
    minors = [text.removeprefix(prefix) for text in PROJECT["project"]["classifiers"] if text.startswith(prefix)]
    assert minors[0] == PROJECT["project"]["requires-python"].removeprefix(">=3.")
    assert workflow("test")["jobs"]["test"]["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in minors]
    assert PROJECT["tool"]["cibuildwheel"]["build"] == [f"cp3{minor}-*" for minor in minors]


@pytest.mark.parametrize("name", ["test", "release"])
def test_workflows_may_read_only_and_run_targets_that_exist(name: str) -> None:
    assert workflow(name)["permissions"] == {"contents": "read"}
    jobs = workflow(name)["jobs"]
    steps = [step for job in jobs.values() for step in job.get("steps", ())]
    for step in steps:
        for target in re.findall(r"\bmake ([a-z]+)", step.get("run", "")):
            assert f"\n{target}:" in (ROOT / "Makefile").read_text(), target
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"] == {"persist-credentials": False}
    assert all(set(job.get("needs", ())) <= set(jobs) for job in jobs.values())


@pytest.mark.parametrize("name", ["test", "release"])
def test_actions_of_others_are_named_by_a_commit_and_its_version(name: str) -> None:
    text = (ROOT / ".github/workflows" / f"{name}.yml").read_text()
    used = re.findall(r"uses: ([^.\s].*)", text)
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []
    assert all((ROOT / called).exists() for called in re.findall(r"uses: (\./\S+)", text))


def test_only_a_tested_release_is_published_and_nothing_else_may_write() -> None:
    jobs = workflow("release")["jobs"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert [name for name, job in jobs.items() if "write" in job.get("permissions", {}).values()] == ["publish"]
