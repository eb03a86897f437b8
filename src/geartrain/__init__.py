"""Geartrain: one durable job server that speaks six protocols over one engine."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from geartrain import compiled

if compiled.PURE_WAS_REQUESTED:
    sys.meta_path.insert(0, compiled.SourceFinder())

if TYPE_CHECKING:
    __version__: str
    from geartrain.app import *  # noqa: F403
    from geartrain.client.async_client import AsyncClient as AsyncClient
    from geartrain.client.async_job import AsyncJob as AsyncJob
    from geartrain.client.async_worker import AsyncWorker as AsyncWorker
    from geartrain.client.job import Job as Job
    from geartrain.client.sync_client import Client as Client
    from geartrain.client.sync_client import SyncJob as SyncJob
    from geartrain.client.sync_client import SyncWorkflow as SyncWorkflow
    from geartrain.client.sync_worker import Worker as Worker
    from geartrain.client.workflow import AsyncWorkflow as AsyncWorkflow
    from geartrain.client.workflow import WorkflowJob as WorkflowJob
    from geartrain.errors import *  # noqa: F403
else:
    # The names of the library are imported at their first use, so that the server does not load the library.
    _MODULES = {
        "AsyncClient": "geartrain.client.async_client",
        "AsyncJob": "geartrain.client.async_job",
        "AsyncWorker": "geartrain.client.async_worker",
        "AsyncWorkflow": "geartrain.client.workflow",
        "Client": "geartrain.client.sync_client",
        "Job": "geartrain.client.job",
        "SyncJob": "geartrain.client.sync_client",
        "SyncWorkflow": "geartrain.client.sync_client",
        "Worker": "geartrain.client.sync_worker",
        "WorkflowJob": "geartrain.client.workflow",
    }
    _OF_APP = {
        "App", "Backoff", "Call", "Codec", "Depends", "GiveUp", "Middleware", "Node", "OutputHandle", "PickleCodec",
        "Proceed", "Retry", "Running", "SyncOutputHandle", "SyncTaskHandle", "SyncWorkflowHandle", "Task", "TaskHandle",
        "Workflow", "WorkflowHandle", "current_task", "register_codec",
    }  # fmt: skip

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib import metadata  # takes longer to import than all the rest

            version = globals()[name] = metadata.version("geartrain")
            return version
        module = "geartrain.app" if name in _OF_APP else _MODULES.get(name, "")
        if name.endswith("Error"):
            module = "geartrain.errors"
        if not module:
            raise AttributeError(f"module 'geartrain' has no attribute {name!r}")
        try:
            return getattr(import_module(module), name)
        except AttributeError:
            raise AttributeError(f"module 'geartrain' has no attribute {name!r}") from None
