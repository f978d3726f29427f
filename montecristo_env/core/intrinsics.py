"""How the compiler makes the intrinsics of `core.jit`; nothing else imports this, and Numba is needed for it."""

from typing import Any

import llvmlite.ir as ir
import numba.core.cgutils
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj as numba_arrays

from montecristo_env.core.jit import WORD

_cgutils: Any = numba.core.cgutils  # its type hints do not cover these
_arrayobj: Any = numba_arrays


def _addresses(context: Any, builder: Any, signature: Any, args: Any) -> tuple[Any, Any]:
    """Of target[at] and source[start]."""
    arrays = [context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 2)]
    into, out_of = (builder.gep(array.data, [args[i]]) for array, i in zip(arrays, (1, 3), strict=True))
    return into, out_of


@intrinsic
def copy_bytes(typing: Any, target: Any, at: Any, source: Any, start: Any, size: Any) -> Any:
    """target[at : at + size] = source[start : start + size], of int8 arrays in one dimension."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _cgutils.raw_memcpy(builder, *_addresses(context, builder, signature, args), args[4], 1)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, types.intp), codegen


@intrinsic
def zero_bytes(typing: Any, target: Any, at: Any, size: Any) -> Any:
    """target[at : at + size] = 0, for an int8 array."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        _cgutils.memset(builder, builder.gep(array.data, [args[1]]), args[2], 0)
        return context.get_dummy_value()

    return types.void(target, types.intp, types.intp), codegen


@intrinsic(prefer_literal=True)
def mark_equal_bytes(typing: Any, target: Any, at: Any, source: Any, start: Any, size: Any, wanted: Any) -> Any:
    """target[at : at + size] = source[start : start + size] == wanted, of int8 arrays; the size is a constant."""
    byte = ir.IntType(8)
    vector = ir.VectorType(byte, size.literal_value)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        into, out_of = (
            builder.bitcast(address, vector.as_pointer()) for address in _addresses(context, builder, signature, args)
        )
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), args[5], ir.IntType(32)(0))
        all_alike = builder.shuffle_vector(
            one, one, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
        )
        equal = builder.icmp_signed("==", builder.load(out_of, align=1), all_alike)
        builder.store(builder.zext(equal, vector), into, align=1)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, size, types.int8), codegen


def _sum_of_products(builder: Any, one: Any, other: Any) -> Any:
    """Of vectors of 16 words of 16 bits."""
    kind = ir.FunctionType(ir.IntType(16), [ir.VectorType(ir.IntType(16), 16)])
    add = _cgutils.get_or_insert_function(builder.module, kind, "llvm.vector.reduce.add.v16i16")
    return builder.zext(builder.call(add, [builder.mul(one, other)]), ir.IntType(64))


@intrinsic
def dot_bytes(typing: Any, one: Any, at: Any, other: Any, start: Any) -> Any:
    """The sum of the products of 16 bytes of two int8 arrays; they must not be negative."""
    bytes_16, wide = (ir.VectorType(ir.IntType(width), 16) for width in (8, 16))

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointers = (
            builder.bitcast(address, bytes_16.as_pointer()) for address in _addresses(context, builder, signature, args)
        )
        factors = (builder.zext(builder.load(pointer, align=1), wide) for pointer in pointers)
        return _sum_of_products(builder, *factors)

    return types.int64(one, types.intp, other, types.intp), codegen


@intrinsic
def dot_two(typing: Any, one: Any, at: Any, other: Any, start: Any) -> Any:
    """`dot_bytes` of 16 bytes of `one` with 16 of `other`, and in the next byte with the 16 after them; below 256."""
    bytes_16, wide = (ir.VectorType(ir.IntType(width), 16) for width in (8, 16))
    bytes_32, places = ir.VectorType(ir.IntType(8), 32), ir.VectorType(ir.IntType(32), 32)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        once, both = _addresses(context, builder, signature, args)
        factor = builder.zext(builder.load(builder.bitcast(once, bytes_16.as_pointer()), align=1), wide)
        both = builder.load(builder.bitcast(both, bytes_32.as_pointer()), align=1)
        in_turn = ir.Constant(places, [place // 2 + 16 * (place % 2) for place in range(32)])
        return _sum_of_products(builder, factor, builder.bitcast(builder.shuffle_vector(both, both, in_turn), wide))

    return types.int64(one, types.intp, other, types.intp), codegen


@intrinsic
def nonzero_bytes(typing: Any, source: Any, start: Any) -> Any:
    """Bit i: whether source[start + i] is not 0, of 16 bytes of an int8 array."""
    vector = ir.VectorType(ir.IntType(8), 16)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        out_of = builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer())
        zero = builder.icmp_signed("==", builder.load(out_of, align=1), ir.Constant(vector, [0] * vector.count))
        return builder.zext(builder.not_(builder.bitcast(zero, ir.IntType(16))), ir.IntType(64))

    return types.uint64(source, types.intp), codegen


@intrinsic(prefer_literal=True)
def load_bytes(typing: Any, source: Any, start: Any, size: Any) -> Any:
    """The number whose bytes are source[start : start + size], lowest first; the size is 1, 2, 4 or 8."""
    word = ir.IntType(8 * size.literal_value)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        out_of = builder.bitcast(builder.gep(array.data, [args[1]]), word.as_pointer())
        found = builder.load(out_of, align=1)
        return builder.zext(found, ir.IntType(64)) if word.width < 64 else found

    return types.int64(source, types.intp, size), codegen


@intrinsic(prefer_literal=True)
def store_bytes(typing: Any, target: Any, at: Any, size: Any, number: Any) -> Any:
    """target[at : at + size] = the lowest bytes of a number, lowest first; the size is 1, 2, 4 or 8."""
    word = ir.IntType(8 * size.literal_value)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        into = builder.bitcast(builder.gep(array.data, [args[1]]), word.as_pointer())
        builder.store(builder.trunc(args[3], word) if word.width < 64 else args[3], into, align=1)
        return context.get_dummy_value()

    return types.void(target, types.intp, size, types.int64), codegen


@intrinsic
def spread_bits(typing: Any, target: Any, at: Any, bits: Any) -> Any:
    """target[at + i] = bit i, for an int8 array and all bits of a word."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        vector = ir.VectorType(ir.IntType(8), WORD)
        into = builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer())
        flags = builder.bitcast(args[2], ir.VectorType(ir.IntType(1), WORD))
        builder.store(builder.zext(flags, vector), into, align=1)
        return context.get_dummy_value()

    return types.void(target, types.intp, types.uint64), codegen


@intrinsic
def local_array(typing: Any, shape: Any, dtype: Any) -> Any:
    """An array on the stack of an entry point, not initialised: small, outside of loops, and gone when it returns."""
    element = dtype.dtype
    kinds: list[Any] = list(shape) if isinstance(shape, types.BaseTuple) else [shape]  # type: ignore[call-overload]
    array = types.Array(element, len(kinds), "C")

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sizes = _cgutils.unpack_tuple(builder, args[0]) if isinstance(shape, types.BaseTuple) else [args[0]]
        sizes = [context.cast(builder, size, kind, types.intp) for size, kind in zip(sizes, kinds, strict=True)]
        strides = [context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(element)))]
        for size in reversed(sizes):
            strides.insert(0, builder.mul(strides[0], size))
        data = builder.alloca(ir.IntType(8), strides[0])
        data.align = 64
        made = context.make_array(array)(context, builder)
        _arrayobj.populate_array(
            made,
            data=builder.bitcast(data, made.data.type),
            shape=sizes,
            strides=strides[1:],
            itemsize=strides[-1],
            meminfo=None,
        )
        return made._getvalue()

    return array(shape, dtype), codegen
