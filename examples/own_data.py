"""From a folder of pictures (a folder a class) to a comparison of two models, with a gate, a LaTeX table and a map.

python examples/own_data.py PICTURES OUT [CANDIDATE [RELEASED]]
"""

import sys
from pathlib import Path

import embark

_, pictures, folder, *models = sys.argv
candidate, released = models + ["embark/pocket", "embark/handmade"][len(models) :]
out = Path(folder)
settings = embark.load_settings(results=out / "results")
tasks = embark.folder_task(pictures, name="Pictures", kinds="all")
print(embark.evaluate([candidate, released], tasks, settings=settings))

# The table of the paper: the best score in bold.
board = embark.leaderboard(tasks=tasks, include="own", settings=settings).table()
(out / "table.tex").write_text(board.only(("model", "mean", "Probe", "Zero-shot")).format("latex") + "\n")

# Where the candidate errs, and how it sees the pictures.
errors = embark.analyze.confusion(tasks="PicturesProbe", models=candidate, settings=settings)
errors.plot(out / "confusion.png")
maps = embark.analyze.map([candidate, released], "PicturesProbe", by="label", settings=settings)
maps.plot(out / "map.png")
print(errors, maps, sep="\n\n")

# The gate comes last: status 1 if the candidate is worse by more than chance and by more than a point.
comparison = embark.compare(candidate, released, tasks=tasks, settings=settings)
comparison.plot(out / "differences.png")
print(comparison)
sys.exit("\n".join(comparison.worse(margin=1)) or 0)
