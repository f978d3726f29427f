"""Builds the compiled kernels along with the package: `pip install .`, `pip install --editable .`, wheels.

MONTECRISTO_TARGET names the machine that a wheel is for, if it is not this one (see `montecristo_env.core.build`), and
MONTECRISTO_KERNELS a folder with kernels that are built already. Everything else is in pyproject.toml.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
TARGET = os.environ.get("MONTECRISTO_TARGET", "")
READY = os.environ.get("MONTECRISTO_KERNELS", "")
PLATFORMS = {
    "x86_64-linux": "manylinux_2_17_x86_64",
    "aarch64-linux": "manylinux_2_17_aarch64",
    "x86_64-windows": "win_amd64",
    "x86_64-macos": "macosx_11_0_x86_64",
    "aarch64-macos": "macosx_11_0_arm64",
}


class BuildWithKernels(build_py):
    """Adds the compiled kernels to the Python files: among the sources, if these are installed as they stand."""

    def run(self) -> None:
        super().run()
        folder = Path("montecristo_env", "core", "kernels")
        folder = ROOT / folder if self.editable_mode else Path(self.build_lib).resolve() / folder
        if not self.editable_mode:
            shutil.rmtree(folder, ignore_errors=True)  # those of the target before this one
        if READY:
            folder.mkdir(parents=True, exist_ok=True)
            libraries = list(Path(READY).glob(f"kernels-{TARGET}*"))
            if not libraries:
                raise SystemExit(f"there are no kernels for {TARGET or 'any target'} in {READY}")
            for path in [Path(READY, "manifest.json"), *libraries]:
                shutil.copy(path, folder)
            return
        paths = [str(ROOT / part) for part in ("", "agents", "train")]
        paths += filter(None, [os.environ.get("PYTHONPATH")])  # by it pip tells where the build's own packages are
        command = [sys.executable, "-m", "montecristo_env.core.build", "--target", TARGET or "native"]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run([*command, "--if-stale", "--folder", str(folder)], env=env)
        if done.returncode != 0:  # setuptools would make a warning of other exceptions, which nobody sees
            raise SystemExit("the kernels could not be compiled; the reason is above")


class PlatformWheel(bdist_wheel):
    """For one platform, and for every Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", PLATFORMS[TARGET] if TARGET else super().get_tag()[2]


class WithKernels(Distribution):
    """It has compiled code, so it belongs where a platform's packages are installed."""

    def has_ext_modules(self) -> bool:
        return True


def readme() -> str:
    """The README for the package index, where links and pictures need whole addresses."""
    home = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]

    def whole(start: re.Match[str]) -> str:
        return f"{start[0]}{home}/{'raw' if start[1] else 'blob'}/HEAD/"

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(!?)(?:\[[^\[\]]*\]|\[!\[[^\]]*\]\([^)]*\)\])\((?!https://)", whole, text)


setup(
    distclass=WithKernels,
    cmdclass={"build_py": BuildWithKernels, "bdist_wheel": PlatformWheel},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
