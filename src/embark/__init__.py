"""embark: what a multimodal embedding model can do, measured once, explained well.

>>> import embark
>>> run = embark.evaluate("embark/pocket")
>>> print(run.table())
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embark.data.readers.folder import folder_task as folder_task
    from embark.data.tasks_file import load_tasks as load_tasks
    from embark.models import get_model as get_model
    from embark.models.encoder import Encoder as Encoder
    from embark.models.functions import encoder as encoder
    from embark.models.functions import generator as generator
    from embark.models.functions import reranker as reranker
    from embark.models.interop import from_mteb as from_mteb
    from embark.models.interop import from_open_clip as from_open_clip
    from embark.models.interop import from_sentence_transformers as from_sentence_transformers
    from embark.run import Run as Run
    from embark.run import evaluate as evaluate
    from embark.run.stages import Stages as Stages
    from embark.studies import analyze as analyze
    from embark.studies.recommend import Recommendation as Recommendation
    from embark.studies.recommend import recommend as recommend
    from embark.studies.study import Study as Study
    from embark.tasks import get_benchmark as get_benchmark
    from embark.tasks import get_tasks as get_tasks
    from embark.types import EmbarkError as EmbarkError
    from embark.types import Item as Item
    from embark.types import ModelCard as ModelCard
    from embark.types import Task as Task

__version__ = "0.1.0"

# Public name → where it lives; loaded at first use, so that `import embark` costs nothing.
_HOMES = {
    "EmbarkError": "types",
    "Encoder": "models.encoder",
    "Item": "types",
    "ModelCard": "types",
    "Recommendation": "studies.recommend",
    "Run": "run",
    "Stages": "run.stages",
    "Study": "studies.study",
    "Task": "types",
    "analyze": "studies.analyze",
    "encoder": "models.functions",
    "evaluate": "run",
    "folder_task": "data.readers.folder",
    "from_mteb": "models.interop",
    "from_open_clip": "models.interop",
    "from_sentence_transformers": "models.interop",
    "generator": "models.functions",
    "get_benchmark": "tasks",
    "get_model": "models",
    "get_tasks": "tasks",
    "load_tasks": "data.tasks_file",
    "recommend": "studies.recommend",
    "reranker": "models.functions",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'embark' has no attribute '{name}'")
    module = import_module(f"embark.{_HOMES[name]}")
    return getattr(module, name, module)  # `analyze` is a module itself


def __dir__() -> list[str]:
    return __all__
