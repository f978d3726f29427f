"""The table as a page that needs no server: the same front end, with the rules in the page."""

import hashlib
import json
from pathlib import Path

from montecristo_env.errors import InvalidArgument
from montecristo_env.util.files import atomic_write
from montecristo_env.web.replay_page import static

COMPILED = ("montecristo.wasm", "alphazero.safetensors")
"""What `python -m montecristo_agents.wasm` writes."""
SCRIPTS = (
    *("analysis.js", "board.js", "changes.js", "chart.js", "draw.js"),
    *("end.js", "lobby.js", "montecristo.js", "page_replay.js", "replay.js"),
    *("session.js", "table.js", "teach.js", "thinker.js", "words.js"),
)


def write_page(folder: Path, compiled: Path) -> None:
    """Writes all files of the page.

    Args:
        folder: where to; any server of files can serve it, under any address.
        compiled: the folder with the compiled module and the network.
    """
    if missing := [name for name in COMPILED if not (compiled / name).is_file()]:
        raise InvalidArgument(f"{compiled} lacks {', '.join(missing)}: make wasm writes them")
    files = {name: (compiled / name).read_bytes() for name in COMPILED}
    files |= {name: static(name).encode() for name in (*SCRIPTS, "style.css")}
    files["backend.js"] = static("page_backend.js").encode()
    for name, source in (("index.html", "lobby.html"), ("table.html", "table.html"), ("replay.html", "replay.html")):
        files[name] = _without_server(static(source)).encode()
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in sorted(files.items())))
    offline = static("offline.js").replace("{{version}}", digest.hexdigest()[:16])
    files["offline.js"] = offline.replace("{{files}}", json.dumps(["./", *sorted(files)])).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        atomic_write(folder / name, content)


def _without_server(page: str) -> str:
    """A page whose files lie beside it."""
    for served, here in (
        ('"/static/', '"'),
        ('href="/"', 'href="index.html"'),
        ("<style>{{style}}</style>", '<link rel="stylesheet" href="style.css">'),
        ('<script type="module">{{script}}</script>', '<script type="module" src="page_replay.js"></script>'),
        ("{{data}}", ""),
    ):
        page = page.replace(served, here)
    return "".join(line for line in page.splitlines(keepends=True) if "Content-Security-Policy" not in line)
