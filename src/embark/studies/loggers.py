"""Where measurements go during training: thin sinks for the usual loggers, and a CSV file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from embark.escape import csv as escaped
from embark.run.live import Measurement
from embark.types import EmbarkError

COLUMNS = ("step", "task", "score", "low", "high", "change", "change low", "change high", "p", "seconds")
UNNAMED = re.compile(r"[^\w\-. /]")  # what MLflow takes in no name of a metric

Target = Any  # a logger of another library, its name, a file, or a function
Logger = Callable[[Measurement], object]


def logger_of(target: Target) -> Logger:
    """A function that hands measurements to a logger, which is known by its methods or by its name."""
    if isinstance(target, (str, Path)):
        if str(target) in BY_NAME:
            return BY_NAME[str(target)]()
        if Path(target).suffix == ".csv":
            return csv_logger(Path(target))
    elif hasattr(target, "add_scalar"):
        return tensorboard_logger(target)
    elif hasattr(target, "define_metric"):
        return wandb_logger(target)
    elif hasattr(target, "log_metrics"):
        return metrics_logger(target)
    elif callable(target):
        return target  # type: ignore[no-any-return]
    raise EmbarkError(
        f"{target!r} is no logger: give {', '.join(BY_NAME)}, a run or writer of these, a .csv file or a function."
    )


def csv_text(measurements: Iterable[Measurement], header: bool = True) -> str:
    """Measurements as CSV, one line per step and task; what is not known is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(COLUMNS)
    for measurement in measurements:
        for point in measurement.points:
            change = point.change or ("",) * 4
            numbers = (point.score, point.low, point.high, *change, round(measurement.seconds, 3))
            writer.writerow((measurement.step, escaped(point.task), *numbers))
    return out.getvalue()


def csv_logger(path: Path) -> Logger:
    """Lines at the end of a file; a training that goes on writes on."""

    def write(measurement: Measurement) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = csv_text([measurement], header=not path.exists())
        with path.open("a", encoding="utf-8") as file:
            file.write(text)

    return write


def tensorboard_logger(writer: Any) -> Logger:
    """Scalars of a SummaryWriter, of torch.utils.tensorboard or tensorboardX."""

    def write(measurement: Measurement) -> None:
        for name, value in measurement.metrics().items():
            writer.add_scalar(name, value, measurement.step)
        writer.flush()

    return write


def wandb_logger(run: Any) -> Logger:
    """Metrics of a run of Weights & Biases, over a step of their own: the trainer's may be ahead by then."""
    run.define_metric("embark/step", hidden=True)
    run.define_metric("embark/*", step_metric="embark/step")
    return lambda measurement: run.log({**measurement.metrics(), "embark/step": measurement.step})


def metrics_logger(logger: Any) -> Logger:
    """Metrics of mlflow (the module), or of any logger of Lightning."""

    def write(measurement: Measurement) -> None:
        metrics = {UNNAMED.sub("_", name): value for name, value in measurement.metrics().items()}
        logger.log_metrics(metrics, step=measurement.step)

    return write


def _wandb() -> Logger:
    try:
        import wandb
    except ImportError as error:
        raise EmbarkError("This logger needs wandb: pip install wandb") from error
    ready: list[Logger] = []

    def write(measurement: Measurement) -> None:
        if not ready:  # at the first measurement: a trainer has begun its run by then
            ready.append(wandb_logger(wandb.run or wandb.init()))
        ready[0](measurement)

    return write


def _tensorboard() -> Logger:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise EmbarkError("This logger needs tensorboard: pip install tensorboard") from error
    return tensorboard_logger(SummaryWriter())


def _mlflow() -> Logger:
    try:
        import mlflow
    except ImportError as error:
        raise EmbarkError("This logger needs mlflow: pip install mlflow") from error
    return metrics_logger(mlflow)


BY_NAME: dict[str, Callable[[], Logger]] = {"wandb": _wandb, "tensorboard": _tensorboard, "mlflow": _mlflow}
