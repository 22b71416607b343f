# The types of the public API; at run time __init__.py loads a name from the same place at first use.
from embark import analyze as analyze
from embark import exchange as exchange
from embark import models as models
from embark import plugins as plugins
from embark import published as published
from embark import seams as seams
from embark import site as site
from embark import store as store
from embark import tasks as tasks
from embark import types as types
from embark.boards.comparable_results import load_results as load_results
from embark.boards.facts import show as show
from embark.boards.leaderboards import leaderboard as leaderboard
from embark.engine.ray.cluster import Cluster as Cluster
from embark.models import get_model as get_model
from embark.models import get_models as get_models
from embark.models.encoder import Encoder as Encoder
from embark.models.functions import encoder as encoder
from embark.models.loading import Loading as Loading
from embark.own.folder import folder_task as folder_task
from embark.own.make_task import task as task
from embark.own.names import get_tasks as get_tasks
from embark.own.tasks_file import load_tasks as load_tasks
from embark.reports.report import report as report
from embark.run import evaluate as evaluate
from embark.run.costs import cost as cost
from embark.run.examination import doctor as doctor
from embark.run.fetching import fetch as fetch
from embark.run.plans import plan as plan
from embark.run.stages import Stages as Stages
from embark.settings import Settings as Settings
from embark.settings import load_settings as load_settings
from embark.stats.compare import compare as compare
from embark.studies.monitor import Monitor as Monitor
from embark.studies.recommend import recommend as recommend
from embark.tasks import get_benchmark as get_benchmark
from embark.tasks import get_benchmarks as get_benchmarks
from embark.types import EmbarkError as EmbarkError
from embark.verification import verify as verify

__version__: str
__all__: list[str]
