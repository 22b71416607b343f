"""`embark doctor`."""

from __future__ import annotations

from typing import Annotated

import typer

from embark.cli.output import AsJson, Compile, Device, Precision, Trust, print_columns, print_json, say

SIGNS = {"ok": "✓", "wrong": "✗", "note": "·"}


def doctor(
    model: Annotated[str, typer.Argument(help="Model name, checkpoint folder, or LOADER:SOURCE.")],
    device: Device = "auto",
    dtype: Precision = None,
    compile: Compile = False,
    trust: Trust = None,
    as_json: AsJson = False,
) -> None:
    """Examine a model before you trust its scores: in under a minute, on a few sample items.

    Checks shape, vectors that are finite, varied and fit to be stored, determinism, batches, order, instructions,
    roles, mixed items, declared length, speed and memory. Ends with status 1 if something is wrong.

    \b
    embark doctor embark/pocket
    embark doctor ./my-checkpoint --device cpu
    """
    from embark.engine.doctor import examine
    from embark.models import get_model

    encoder = get_model(model, device=device, dtype=dtype, compile=compile, trust=trust)
    findings = examine(encoder, lambda what: None if as_json else say(f"examining {what} …"))
    if as_json:
        print_json([vars(finding) for finding in findings])
    else:
        print_columns(["", "check", "finding"], [[SIGNS[f.verdict], f.check, f.message] for f in findings])
    wrong = [finding for finding in findings if finding.verdict == "wrong"]
    say(f"{model}: {len(wrong)} of {len(findings)} checks found a fault." if wrong else f"{model}: no fault found.")
    if wrong:
        raise typer.Exit(1)
