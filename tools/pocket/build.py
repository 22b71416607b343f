"""Build the pocket data: emoji.parquet and speech.parquet, which are shipped, and train.npz, which is not.

python tools/pocket/build.py --npm NPM --out OUT [--parts table clips train]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pictures import STYLES, noto_webp, training_pictures
from rows import LANGUAGES, Row, load_rows
from speech import VOICES, spoken_clips, training_mels

ATTRIBUTES = [field.name for field in fields(Row) if field.name not in ("names", "keywords", "picture")]


def write_table(rows: Sequence[Row], npm: Path, out: Path) -> None:
    """emoji.parquet in one row group: pictures as they are (WebP does not shrink), the rest pressed hard."""
    columns = {name: [getattr(row, name) for row in rows] for name in ATTRIBUTES}
    columns["keywords_en"] = [row.keywords["en"] for row in rows]
    columns |= {f"name_{language}": [row.names.get(language) for row in rows] for language in LANGUAGES}
    pressed = [*columns, "keywords_en.list.element"]
    columns["image"] = noto_webp(npm, rows)
    pq.write_table(
        pa.table(columns),
        out / "emoji.parquet",
        compression=dict.fromkeys(pressed, "ZSTD") | {"image": "NONE"},
        compression_level=dict.fromkeys(pressed, 19),
        use_dictionary=False,
        row_group_size=len(rows),
    )


def write_clips(rows: Sequence[Row], npm: Path, out: Path) -> None:
    """speech.parquet."""
    table = pa.Table.from_pylist(spoken_clips(rows))
    pq.write_table(table, out / "speech.parquet", compression="ZSTD", use_dictionary=False)


def write_train(rows: Sequence[Row], npm: Path, out: Path) -> None:
    """train.npz: pictures, log-mels, and a JSON of rows, styles and voices as bytes."""
    meta = {"rows": [asdict(row) for row in rows], "styles": list(STYLES.items()), "voices": VOICES}
    text = np.frombuffer(json.dumps(meta, ensure_ascii=False).encode(), np.uint8)
    np.savez_compressed(out / "train.npz", meta=text, **training_pictures(npm, rows), **training_mels(rows))


PARTS = {"table": write_table, "clips": write_clips, "train": write_train}


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the pocket data from npm packages and espeak-ng.")
    parser.add_argument("--npm", type=Path, required=True, help="folder that fetch.sh filled")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = load_rows(args.npm)
    print(f"{len(rows)} emoji", flush=True)
    for part in args.parts:
        PARTS[part](rows, args.npm, args.out)


if __name__ == "__main__":
    main()
