"""What drawings share: colors that differ, ticks that can be read, and labels that cover nothing."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from embark.studies.plotting import COLORS, color, label_points, log_axis, marker


def test_twenty_groups_have_colors_of_their_own_and_sixty_a_look() -> None:
    assert len({color(number) for number in range(20)}) == len(COLORS) == 20
    looks = [(color(number), marker(number)) for number in range(15)]
    assert len({look[1] for look in looks[:8]}) == 1
    assert len(set(looks)) == 15


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ((256, 512, 768, 1024), ["256", "512", "768", "1,024"]),
        (np.geomspace(90, 8000, 30), ["100", "300", "1,000"]),
        ((0.247821, 0.490905, 1.62916), ["0.248", "0.491", "1.63"]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_plain_numbers(values: tuple[float, ...], ticks: list[str]) -> None:
    axes = Figure().subplots()
    axes.plot(values, values)
    log_axis(axes, values)
    axes.figure.draw_without_rendering()
    texts = [label.get_text() for label in axes.get_xticklabels()]
    assert [text for text in texts if text in ticks] == ticks
    assert not any("10^" in text or "times" in text for text in texts)


def test_labels_cover_neither_each_other_nor_points_nor_the_line() -> None:
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.uniform(size=(2, 8)))
    axes.step(x, y, where="post")
    axes.plot(x, y, "o")
    axes.margins(0.2)
    line = np.column_stack([np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]])
    label_points(axes, x, y, [f"a model of number {number}" for number in range(8)], line=line)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 8
    assert not any(a.overlaps(b) for number, a in enumerate(boxes) for b in boxes[:number])
    points = axes.transData.transform(np.column_stack([x, y]))
    assert not any(box.contains(*point) for box in boxes for point in points)
    frame = axes.get_window_extent()
    assert all(frame.x0 - 1 <= box.x0 and box.x1 <= frame.x1 + 1 for box in boxes)
