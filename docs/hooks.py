"""What the documentation takes from elsewhere: tables from the code, pages from their own sources; and its checks.

MkDocs calls the functions `on_...`. A line `<!-- made: NAME -->` in a page is replaced by what MAKERS[NAME] returns.
"""

import ast
import dataclasses
import enum
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html.parser import HTMLParser
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import tables
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import montecristo_env
from montecristo_env import actions, montecristo_v0, render
from montecristo_env.record import GameRecord
from montecristo_env.replay import write_replay
from montecristo_env.web.page import COMPILED, write_page
from montecristo_train import alphazero_settings, ppo
from montecristo_train.settings import RunSettings

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {
    "montecristo_env": ROOT,
    "montecristo_verifiers": ROOT,
    "montecristo_agents": ROOT / "agents",
    "montecristo_train": ROOT / "train",
}
OPTIONAL = {"ladder.md", "benchmarks.md"}  # written by programs
RULES = "rules.md"
COMPILED_FOLDER = ROOT / "build" / "wasm"  # `make wasm` writes it


# --- tables


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def all_actions() -> str:
    """Every action, one table per block."""
    parts = []
    for name, block in actions.BLOCKS.items():
        rows = [(str(code), f"`{actions.decode(code)}`", f"`{actions.decode(code)!r}`") for code in block]
        parts += [f"### `{name}`", table(("Code", "Notation", "`decode(code)`"), rows)]
    return "\n\n".join(parts)


class Recipe(Protocol):
    """A module of a training recipe."""

    Settings: type[RunSettings]
    PRESETS: dict[str, tuple[str, Any]]


def settings_table(recipe: Recipe) -> str:
    """The settings of a recipe, what they mean, and what its presets say; bold where that is not the default."""
    default = recipe.Settings()
    meanings: dict[str, str] = {}
    for cls in reversed(recipe.Settings.__mro__[:-1]):  # what a recipe says of a setting counts more
        meanings |= attribute_docs(cls)
    rows = []
    for field in dataclasses.fields(recipe.Settings):
        row = [f"`{field.name}`", meanings[field.name]]
        for _, preset in recipe.PRESETS.values():
            value = getattr(preset, field.name)
            row.append(f"**{plain(value)}**" if value != getattr(default, field.name) else plain(value))
        rows.append(row)
    return table(("Setting", "Meaning", *(f"`{name}`" for name in recipe.PRESETS)), rows)


def plain(value: Any) -> str:
    """A setting as one would write it on the command line."""
    if isinstance(value, tuple):
        return " ".join(map(plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value) or "–"


def attribute_docs(cls: type) -> dict[str, str]:
    """The text below each attribute of a class; an attribute without one is an error."""
    body = ast.parse(inspect.getsource(cls)).body[0].body
    docs = {}
    for node, following in pairwise(body):
        if isinstance(node, ast.AnnAssign):
            if not (isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)):
                raise PluginError(f"{cls.__name__}.{node.target.id} has no text below it")
            docs[node.target.id] = " ".join(following.value.value.split())
    return docs


def presets_table(recipe: Recipe) -> str:
    """What the presets of a recipe are for."""
    rows = [(f"`{name}`", text, f"{preset.total_timesteps:,}") for name, (text, preset) in recipe.PRESETS.items()]
    return table(("Preset", "What it takes and gives", "Timesteps"), rows)


def layers_table() -> str:
    """The modules, lowest first, as the test of the layers has them."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    (layers,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS"
    ]
    rows = [
        (str(number), f"`{module}`", module_summary(module))
        for number, layer in enumerate(layers, start=1)
        for module in layer
    ]
    return table(("Layer", "Module", "What it is"), rows)


def module_summary(module: str) -> str:
    """The first line of a module's docstring."""
    base = FOLDERS[module.split(".")[0]].joinpath(*module.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0].lstrip("# ")


def public_names() -> str:
    """The reference of everything that `montecristo_env` exports; enumerations and errors come last.

    Modules have pages of their own.
    """

    def rank(name: str) -> int:
        kinds = enum.Enum, Exception
        return next((place for place, kind in enumerate(kinds, start=1) if is_a(name, kind)), 0)

    def is_a(name: str, kind: type) -> bool:
        exported = getattr(montecristo_env, name)
        return isinstance(exported, type) and issubclass(exported, kind)

    names = [name for name in montecristo_env.__all__ if not inspect.ismodule(getattr(montecristo_env, name))]
    parts = []
    for name in sorted(names, key=rank):
        parts.append(f"::: montecristo_env.{name}\n    options:\n      show_root_full_path: false")
        if is_a(name, enum.Enum):
            members = [(str(member.value), f"`{member.name}`") for member in getattr(montecristo_env, name)]
            parts.append(table(("Number", "Name"), members))
    return "\n\n".join(parts)


FRAMEWORKS = (  # name, page, what one gets, extra, package
    ("PettingZoo", "pettingzoo.md", "AEC environment", "", "pettingzoo"),
    ("Gymnasium", "gymnasium.md", "environment, and a native vector environment", "", "gymnasium"),
    ("Stable-Baselines3", "stable-baselines3.md", "native `VecEnv`, action masks", "sb3", "stable-baselines3"),
    ("TorchRL", "torchrl.md", "native batched `EnvBase`", "torchrl", "torchrl"),
    ("OpenSpiel", "openspiel.md", "a Python game with chance nodes", "openspiel", "open_spiel"),
    ("RLlib", "rllib.md", "a recipe on native runners", "rllib", "ray"),
    ("TextArena", "../text.md#textarena", "the game in words", "textarena", "TextArena"),
    ("verifiers", "../text.md#verifiers", "taskset with self-play", "verifiers", "verifiers"),
)


def frameworks_table() -> str:
    """What was tested with which versions: the oldest that our ranges allow, and that of the constraints."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    ranges = {canonicalize_name(wanted.name): wanted.specifier for wanted in map(Requirement, texts)}

    def tested(package: str) -> str:
        (oldest,) = [bound.version for bound in ranges[canonicalize_name(package)] if bound.operator == ">="]
        newer = Version(oldest) < Version(pinned[package])
        return f"{oldest} and {pinned[package]}" if newer else pinned[package]

    rows = [
        (f"[{name}]({page})", gives, f"`{extra}`" if extra else "none", tested(package))
        for name, page, gives, extra, package in FRAMEWORKS
    ]
    return table(("Framework", "What you get", "Extra", "Tested with"), rows)


MAKERS: dict[str, Callable[[], str]] = {
    "observation groups": tables.group_table,
    "observation": tables.observation_table,
    "actions": tables.action_table,
    "all actions": all_actions,
    "settings": partial(settings_table, ppo),
    "presets": partial(presets_table, ppo),
    "alphazero_settings": partial(settings_table, alphazero_settings),
    "alphazero_presets": partial(presets_table, alphazero_settings),
    "layers": layers_table,
    "frameworks": frameworks_table,
    "public names": public_names,
}


# --- pages


def environment_page() -> str:
    """The docstring of `montecristo_v0`, in PettingZoo's format; its headings begin at the third level."""
    text = inspect.getdoc(montecristo_v0) or ""
    text = re.sub("^##(#+ )", r"#\1", text, flags=re.MULTILINE)
    return text.replace("`docs/rules.md`", f"[`docs/rules.md`]({RULES})")


def root_page(name: str) -> str:
    """A page from the top of the repository; links that are relative to that still lead there."""
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.compile(r"\]\((?!https?:|#|docs/)")
    return links.sub("](../", text).replace("](docs/", "](")


def notebook_page(path: Path) -> str:
    """A notebook with its outputs, as it was executed last."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [shown for output in cell["outputs"] if (shown := notebook_output(output))]
    return "\n\n".join(parts)


def notebook_output(output: dict[str, Any]) -> str:
    """What a cell has printed or shown; the richest form that a page can have."""
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```" if output["name"] == "stdout" else ""
    data = {kind: "".join(value) for kind, value in output["data"].items() if isinstance(value, str | list)}
    if "image/png" in data:
        return f'<img alt="" src="data:image/png;base64,{data["image/png"].strip()}">'
    if "text/html" in data:
        return f"<div>{' '.join(data['text/html'].splitlines())}</div>"
    return f"```text\n{data.get('text/plain', '')}\n```"


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

PAGES: dict[str, Callable[[], str]] = {
    **{f"tutorials/{path.stem}.md": partial(notebook_page, path) for path in NOTEBOOKS},
    "environment.md": environment_page,
    "contributing.md": lambda: root_page("CONTRIBUTING.md"),
    "changelog.md": lambda: root_page("CHANGELOG.md"),
}


def on_config(config: Any) -> None:
    """Leaves out of the navigation what is optional and not there."""
    missing = {name for name in OPTIONAL if not Path(config.docs_dir, name).exists()}
    config.nav = _without(config.nav, missing)


def _without(nav: list[dict[str, Any]], missing: set[str]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for item in nav:
        ((title, below),) = item.items()
        if isinstance(below, list):
            below = _without(below, missing)
        if below and str(below) not in missing:
            kept.append({title: below})
    return kept


def on_files(files: Files, config: Any) -> None:
    """Adds the pages whose source is elsewhere."""
    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    for name, content in played_pages().items():
        files.append(File.generated(config, name, content=content))


def played_pages() -> dict[str, bytes]:
    """The replay that the home page shows, and the table that needs no server, by file name."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        write_replay(GameRecord.load(ROOT / "docs" / "replay.json"), folder / "replay.html")
        if all((COMPILED_FOLDER / name).is_file() for name in COMPILED):
            write_page(folder / "play", COMPILED_FOLDER)
        else:  # who only writes a page of the documentation need not compile
            (folder / "play").mkdir()
            (folder / "play" / "index.html").write_text("<!doctype html><title>Play</title>This needs: make wasm")
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Puts in the tables; makes plain text of links to what is optional and missing, or outside of the site."""

    def made(match: re.Match[str]) -> str:
        if match[1] not in MAKERS:
            raise PluginError(f"{page.file.src_uri}: nothing is made under the name {match[1]!r}")
        return MAKERS[match[1]]()

    def unlinked(match: re.Match[str]) -> str:
        name = match[2].partition("#")[0]
        target = (ROOT / "docs" / page.file.src_uri).parent / name
        if target.exists():
            return match[0] if target.resolve().is_relative_to(ROOT / "docs") else match[1]
        return match[1] if name in OPTIONAL else match[0]

    markdown = re.sub(r"^<!-- made: (.+) -->$", made, markdown, flags=re.MULTILINE)
    return re.sub(r"(?<!!)\[([^\]]+)\]\(((?!https?:|#)[^)\s]+)\)", unlinked, markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Keeps the link to the repository from asking its host for stars: nothing is fetched from elsewhere."""
    return output.replace(' data-md-component="source"', "")


# --- clause numbers

_TAGS = re.compile(r"(<[^>]+>)")
_CLAUSES = re.compile(r"§(\d+(?:\.\d+)?)")
_UNTOUCHED = {"a", "code", "pre", "h1", "h2", "h3", "h4", "title"}


def on_page_content(html: str, page: Page, files: Files, **_: Any) -> str:
    """Makes every clause number a link to the clause; keeps shapes and ranges on one line."""
    html = re.sub(r"<td>(\([\d, ]+\)|\d+-\d+)</td>", r'<td class="exact">\1</td>', html)
    rules = files.get_file_from_path(RULES)
    at_rules = page.file.src_uri == RULES
    if rules is None:
        raise PluginError(f"{RULES} is missing")
    if at_rules:
        html = re.sub(r"(<strong)(>§(\d+\.\d+) )", r'\1 id="clause-\3"\2', html)
        html = re.sub(r"(<h2 [^>]+>)(§(\d+) )", r'\1<span id="clause-\3"></span>\2', html)
    base = "" if at_rules else get_relative_url(rules.url, page.url)
    parts, closed_by = [], ""
    for part in _TAGS.split(html):
        if part.startswith("<"):
            name = part.strip("</>").split()[0]
            if not closed_by and name in _UNTOUCHED and not part.startswith("</"):
                closed_by = f"</{name}>"
            elif not closed_by and 'id="clause-' in part and name == "strong":
                closed_by = "</strong>"
            elif part == closed_by:
                closed_by = ""
        elif not closed_by:
            part = _CLAUSES.sub(rf'<a href="{base}#clause-\1">§\1</a>', part)
        parts.append(part)
    return "".join(parts)


# --- checks


class _Links(HTMLParser):
    """What a page has: anchors, links to follow, and what the browser loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what a tag refers to."""
        known = {name: value for name, value in attrs if value is not None}
        self.anchors |= {known[name] for name in ("id", "name") if name in known}
        self.links += [known["href"]] if tag == "a" and "href" in known else []
        if tag == "link" and known.get("rel") not in ("canonical", "prev", "next"):  # those tell, and load nothing
            self.loaded.append(known["href"])
        self.loaded += [known["src"]] if "src" in known else []


def on_post_build(config: Any) -> None:
    """Looks at the built pages: every link leads somewhere, nothing is fetched, and every exported name is there."""
    site = Path(config.site_dir).resolve()
    pages = {path: _Links(path) for path in sorted(site.rglob("*.html"))}
    broken = [f"{path.relative_to(site)}: {what}" for path in pages for what in _broken(site, path, pages)]
    if broken:
        raise PluginError("broken links:\n  " + "\n  ".join(broken))
    reference = {anchor for path, page in pages.items() if path.parent.name == "api" for anchor in page.anchors}
    described = {anchor.rpartition(".")[2] for anchor in reference}
    for module in (montecristo_env, montecristo_v0, render):
        names = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
        if missing := names - described:
            raise PluginError(f"the reference lacks names of {module.__name__}: {', '.join(sorted(missing))}")


def _broken(site: Path, path: Path, pages: dict[Path, _Links]) -> Iterator[str]:
    for link in [*pages[path].links, *pages[path].loaded]:
        parts = urlsplit(link)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            if link in pages[path].loaded:
                yield f"{link} would be fetched from elsewhere"
            elif parts.scheme not in ("https", "http", "mailto") or " " in link or "." not in parts.netloc + parts.path:
                yield f"{link} is no address"
            continue
        if path.name == "404.html":  # its links count from the root of a server
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        if not target.is_relative_to(site) or not target.exists():
            yield f"{link} leads nowhere"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{link}: there is no such anchor"
