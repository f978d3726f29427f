"""Compiles the kernels: `python -m montecristo_env.core.build [--target x86_64-linux]`.

Numba turns every entry point into LLVM's language, once; all of it becomes one module, which LLVM optimises and
translates for each target; and a linker makes a shared library of that, which exports the entry points and needs
neither Python nor Numba. The linker is that of Zig, from PyPI's `ziglang`, which knows all targets; where it is not
installed, the C compiler of this machine links for this machine.
"""

import argparse
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import types as python_types
from pathlib import Path
from typing import Any, NamedTuple, cast

# Before Numba is imported: the optimising is done here, at the end, and nothing is made for this very machine.
if __name__ == "__main__":
    os.environ |= {"NUMBA_OPT": "0", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_DISABLE_JIT": "0"}
    os.environ["NUMBA_BOUNDSCHECK"] = os.environ.get("MONTECRISTO_BOUNDSCHECK", "0")

import numpy as np

from montecristo_env.core import library
from montecristo_env.core.jit import FAILED, Array, EntryPoint, Kernel
from montecristo_env.errors import InvalidArgument
from montecristo_env.util.files import atomic_write, locked

OPT_LEVEL = 3


class Target(NamedTuple):
    """What a library is made for."""

    triple: str  # of LLVM
    zig: str  # the same as Zig calls it
    levels: dict[str, tuple[str, str]]  # by name: the processor and more of its features


_X86 = {"": ("x86-64", ""), "v3": ("x86-64-v3", "")}
TARGETS = {
    "x86_64-linux": Target("x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.17", _X86),
    "aarch64-linux": Target("aarch64-unknown-linux-gnu", "aarch64-linux-gnu.2.17", {"": ("generic", "")}),
    "x86_64-windows": Target("x86_64-pc-windows-gnu", "x86_64-windows-gnu", _X86),
    "x86_64-macos": Target("x86_64-apple-macosx11.0.0", "x86_64-macos.11.0-none", _X86),
    "aarch64-macos": Target("arm64-apple-macosx11.0.0", "aarch64-macos.11.0-none", {"": ("apple-m1", "")}),
    "wasm32": Target("wasm32-unknown-unknown", "wasm32-freestanding", {"": ("generic", "+simd128,+bulk-memory")}),
}

NATIVE = Path(__file__).with_name("native.c")
"""What the library has besides the kernels."""


def modules() -> list[str]:
    """Those of our modules that have entry points, by their text: they are not imported for that."""
    found = []
    for package in library.PACKAGES:
        folder = library.package_folder(package)
        for path in sorted(folder.rglob("*.py")):
            if re.search(r"^@entry_point$", path.read_text(encoding="utf-8"), re.MULTILINE):
                found.append(".".join([package, *path.relative_to(folder).with_suffix("").parts]))
    return found


def import_kernels() -> list[str]:
    """Imports all modules that have entry points; the files that the compiled code follows from."""
    if importlib.util.find_spec("torch") is None:  # recipes need it, kernels do not, but the package asks for it
        bare = python_types.ModuleType("montecristo_train")
        bare.__path__ = [str(library.package_folder("montecristo_train"))]
        sys.modules[bare.__name__] = bare
    for module in modules():
        importlib.import_module(module)
    files = sorted(path.name for path in Path(__file__).parent.glob("*.py"))
    core = [f"montecristo_env/core/{name}" for name in [*files, NATIVE.name] if name != "library.py"]
    others = sorted(f"{module.replace('.', '/')}.py" for module in Kernel.MODULES if ".core." not in module)
    models = library.package_folder("montecristo_agents") / "models"
    weights = [f"montecristo_agents/models/{path.name}" for path in sorted(models.glob("*.json"))]
    return core + others + weights


class Collected:
    """What Numba makes of entry points and kernels: each function once, neither linked nor optimised nor loaded.

    Numba itself would do all that again for every function that calls others.
    """

    def __init__(self) -> None:
        from numba.core.codegen import CPUCodeLibrary
        from numba.core.cpu import CPUContext

        self.parts: list[Any] = []

        def keep(code: Any) -> None:
            self.parts.append(code._final_module)
            code._finalized = True

        def nothing_to_call(context: Any, code: Any, *rest: Any) -> Any:
            code._ensure_finalized()
            return [].append  # Numba only wants to tell functions apart by what it gets here

        made: Any = CPUCodeLibrary
        made.finalize, made._optimize_functions = keep, lambda code, module: None
        cast(Any, CPUContext).get_executable = nothing_to_call

    def add(self, entry: EntryPoint[Any, Any]) -> None:
        """Compiles an entry point, and the kernels that it calls."""
        from numba.core.registry import cpu_target

        context = cpu_target.target_context
        kinds = tuple(_numba_type(kind) for kind in entry.parameters.values())
        entry.dispatcher.compile(kinds)
        compiled = entry.dispatcher.overloads[kinds]
        code = context.codegen().create_library(entry.symbol)
        module = code.create_ir_module(entry.symbol)
        _write_wrapper(context, module, entry.symbol, kinds, compiled)
        code.add_ir_module(module)
        code.finalize()

    def module(self) -> str:
        """All of it as one module."""
        import llvmlite.binding as llvm

        whole = llvm.parse_assembly("")
        for part in self.parts:
            whole.link_in(part, preserve=True)
        return str(whole)


def _numba_type(kind: Any) -> Any:
    from numba import types
    from numba.np.numpy_support import from_dtype

    if isinstance(kind, Array):
        return types.Array(from_dtype(kind.dtype), kind.ndim, "C")
    return {int: types.int64, bool: types.boolean, float: types.float64, np.uint64: types.uint64}[kind]


def _write_wrapper(context: Any, module: Any, symbol: str, kinds: tuple[Any, ...], compiled: Any) -> None:
    """The function that Python calls: `int64_t symbol(const int64_t *arguments)`."""
    import llvmlite.ir as ir
    from numba import types
    from numba.np import arrayobj as numba_arrays

    arrayobj: Any = numba_arrays

    word = ir.IntType(64)
    function = ir.Function(module, ir.FunctionType(word, [word.as_pointer()]), symbol)
    builder = ir.IRBuilder(function.append_basic_block())
    place = 0

    def take() -> Any:
        nonlocal place
        place += 1
        return builder.load(builder.gep(function.args[0], [word(place - 1)]))

    values = []
    for kind in kinds:
        if isinstance(kind, types.Array):
            made = context.make_array(kind)(context, builder)
            data, sizes = take(), [take() for _ in range(kind.ndim)]
            strides = [word(context.get_abi_sizeof(context.get_data_type(kind.dtype)))]
            for size in reversed(sizes):
                strides.insert(0, builder.mul(strides[0], size))
            arrayobj.populate_array(
                made,
                data=builder.inttoptr(data, made.data.type),
                shape=sizes,
                strides=strides[1:],
                itemsize=strides[-1],
                meminfo=None,
            )
            values.append(made._getvalue())
        elif kind == types.float64:
            values.append(builder.bitcast(take(), ir.DoubleType()))
        elif kind == types.boolean:
            values.append(builder.icmp_unsigned("!=", take(), word(0)))
        else:
            values.append(take())
    called = context.declare_function(module, compiled.fndesc)
    result = compiled.signature.return_type
    status, found = context.call_conv.call_function(builder, called, result, kinds, values)
    if result == types.none:
        number: Any = word(0)
    elif isinstance(result, types.Boolean):
        number = builder.zext(found, word)
    else:
        assert result == types.int64, f"{symbol} returns {result}, which is neither int64 nor bool"
        number = found
    builder.ret(builder.select(status.is_ok, number, word(FAILED)))


# What Numba says of the machine that it runs on.
_OWN_MACHINE = re.compile(r'"target-(cpu|features)"="[^"]*"|^target (triple|datalayout) = .*$', re.MULTILINE)


def translate(text: str, target: Target, level: str, exported: list[str]) -> bytes:
    """An object file for one target."""
    import llvmlite.binding as llvm

    cpu, features = target.levels[level]
    machine = llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=cpu, features=features, opt=OPT_LEVEL, reloc="pic", codemodel="default"
    )
    text = _OWN_MACHINE.sub("", text).replace("common global", "internal global")
    module = llvm.parse_assembly(
        f'target triple = "{target.triple}"\ntarget datalayout = "{machine.target_data}"\n{text}'
    )
    for function in module.functions:
        if function.name in exported:
            if "windows" in target.triple:
                function.storage_class = "dllexport"
        elif not function.is_declaration:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=OPT_LEVEL)
    options.loop_vectorization = options.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    module.verify()
    return bytes(machine.emit_object(module))


def link(name: str, kernels: bytes, exported: list[str], out: Path) -> None:
    """A shared library of an object file; for wasm32 a module, which imports `exp`, `log` and memory functions."""
    with tempfile.TemporaryDirectory() as folder:
        file, made = Path(folder, "kernels.o"), Path(folder, out.name)
        file.write_bytes(kernels)
        if importlib.util.find_spec("ziglang") is not None:
            zig = [sys.executable, "-m", "ziglang"]
            compiler = [*zig, "cc", "-target", TARGETS[name].zig]
        elif name == library.native_target() and shutil.which("cc"):
            compiler = ["cc"]
        else:
            raise SystemExit(f"a linker for {name} is missing: pip install ziglang")
        if name == "wasm32":
            exports = [f"--export={symbol}" for symbol in (*exported, "__heap_base", "__stack_pointer")]
            command = [*zig, "wasm-ld", "--no-entry", "--allow-undefined", "--strip-all", *exports]
        else:
            command = [*compiler, "-shared", "-O2", "-s", "-pthread", str(NATIVE)]
        done = subprocess.run([*command, "-o", str(made), str(file)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"linking for {name} failed:\n{done.stderr}")
        atomic_write(out, made.read_bytes())


def build(names: list[str], folder: Path, keep_objects: bool = False) -> None:
    """Compiles all kernels once, and makes the libraries of these targets, and the manifest."""
    import llvmlite.binding as llvm

    def say(message: str) -> None:
        print(f"{time.monotonic() - began:4.0f} s  {message}", file=sys.stderr, flush=True)

    began = time.monotonic()
    files = []
    sources = import_kernels()
    made_from = library.fingerprint(sources)
    collected = Collected()
    for entry in EntryPoint.ALL.values():
        collected.add(entry)
    text, exported = collected.module(), list(EntryPoint.ALL)
    say(f"{len(exported)} entry points, {len(collected.parts)} functions")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for name in names:
        for level in TARGETS[name].levels:
            out = folder / library.file_name(name, level)
            made = translate(text, TARGETS[name], level, exported)
            if keep_objects:
                atomic_write(out.with_suffix(".o"), made)
            link(name, made, exported, out)
            say(f"{out.name}, {out.stat().st_size // 1024} KB")
            files.append(out.name)
    library.write_manifest(folder, sources, made_from, files)


def is_current(names: list[str], folder: Path) -> bool:
    """Whether a folder has the libraries of these targets, made from the sources as they are."""
    files = [library.file_name(name, level) for name in names for level in TARGETS[name].levels]
    return not library.problem_of(folder, files) and library.read_manifest(folder)["sources"] == import_kernels()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = [*TARGETS, "native", "all"]
    parser.add_argument("--target", choices=choices, action="append", help="what for; may be given several times")
    parser.add_argument("--keep-objects", action="store_true", help="also write the object files")
    parser.add_argument("--if-stale", action="store_true", help="only if the sources have changed since the last time")
    parser.add_argument("--folder", type=Path, default=library.FOLDER, help="where to")
    options = parser.parse_args()
    groups = {"native": [library.native_target()], "all": list(TARGETS)}
    names = [name for group in options.target or ["native"] for name in groups.get(group, [group])]
    if unknown := set(names) - set(TARGETS):
        raise SystemExit(f"there are no kernels for {', '.join(unknown)}, only for {', '.join(TARGETS)}")
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
        with locked(options.folder, wait=True):
            if not (options.if_stale and is_current(names, options.folder)):
                build(names, options.folder, options.keep_objects)
    except (InvalidArgument, OSError) as error:  # it cannot be written to, or the disk is full
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
