"""Apps and tasks: typed functions that workers run as durable jobs, with retries, schedules and middleware."""

from geartrain.app.app import App
from geartrain.app.call import Call
from geartrain.app.codecs import Codec, PickleCodec, register_codec
from geartrain.app.context import Running, current_task
from geartrain.app.dependencies import Depends
from geartrain.app.handle import SyncTaskHandle, TaskHandle
from geartrain.app.middleware import Middleware, Proceed
from geartrain.app.node import Node
from geartrain.app.retry import GiveUp, Retry
from geartrain.app.task import Task
from geartrain.app.workflow import Workflow
from geartrain.app.workflow_handle import OutputHandle, SyncOutputHandle, SyncWorkflowHandle, WorkflowHandle
from geartrain.backoff import Backoff

__all__ = [
    "App",
    "Backoff",
    "Call",
    "Codec",
    "Depends",
    "GiveUp",
    "Middleware",
    "Node",
    "OutputHandle",
    "PickleCodec",
    "Proceed",
    "Retry",
    "Running",
    "SyncOutputHandle",
    "SyncTaskHandle",
    "SyncWorkflowHandle",
    "Task",
    "TaskHandle",
    "Workflow",
    "WorkflowHandle",
    "current_task",
    "register_codec",
]
