"""The learning curve of a run as a picture."""

import json
from pathlib import Path

from matplotlib.figure import Figure

from montecristo_agents.report import png
from montecristo_env.util.files import atomic_write

PANELS = {
    "win_rate/": "win rate",
    "train/entropy_loss": "minus entropy",
    "pool/": "win rate of opponents",
    "train/explained_variance": "explained variance",
    "game/decisions": "decisions per game",
    "game/margin": "margin of the winner",
}
FEW = 10  # points that are marked


def draw_curve(metrics: Path, picture: Path) -> None:
    """Draws what the metrics of a run have to tell."""
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    figure = Figure(figsize=(12, 6), layout="constrained")
    axes = figure.subplots(2, 3)
    for axis, (prefix, title) in zip(axes.flat, PANELS.items(), strict=True):
        for name in sorted({name for line in lines for name in line if name.startswith(prefix)}):
            points = [(line["steps"], line[name]) for line in lines if name in line]
            marker = "o" if len(points) <= FEW else None  # a single point has no line
            axis.plot(*zip(*points, strict=True), marker=marker, label=name.removeprefix(prefix))
        if not axis.lines:
            axis.set_axis_off()
            continue
        axis.set_title(title)
        axis.set_xlabel("decisions")
        axis.grid(alpha=0.3)
        if prefix == "win_rate/":
            axis.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))  # where it hides no line
            axis.set_ylim(0, 1)
    atomic_write(picture, png(figure))
