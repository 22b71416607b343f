"""Own data in Python: the pictures of a folder of classes as rows of a frame, scored in this process.

python -m recording.frames FOLDER
"""

import sys
from pathlib import Path

import pandas as pd
from PIL import Image

import embark

paths = sorted(Path(sys.argv[1]).glob("*/*.png"))
frame = pd.DataFrame({"image": [Image.open(path) for path in paths], "label": [path.parent.name for path in paths]})
captions = frame.assign(text=[f"{label} {row}" for row, label in enumerate(frame["label"])]).drop(columns="label")
tasks = [
    embark.task(frame, "zeroshot", name="FrameZeroShot", templates=["a picture of {}"]),
    embark.task(frame, "clustering", name="FrameClustering"),
    embark.task(captions, "retrieval", name="FrameRetrieval"),
]
embark.evaluate("embark/pocket", tasks, show_progress=False)
