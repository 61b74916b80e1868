#!/usr/bin/python3
"""Stand-in of NVIDIA's dcgmproftester: keeps one simulated GPU busy, and counts what it did.

    dcgmproftester13 --no-dcgm-validation -t FIELD -d SECONDS -i NUMBER

FIELD is that of DCGM whose load is made: 1004 arithmetic, 1005 copies within memory, 1010 copies
from the host and to it. NUMBER is the GPU's, as nvidia-smi has it.

Prints a line every ten seconds and at the end. That the kernels, which are PTX text, did their work
is checked by what they leave. Exit code: 0 after SECONDS, 1 with the cause.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

BLOCK = 256  # threads
BLOCKS_OF_SM = 8
STEPS = 1 << 15
FLOP_OF_STEP = 64  # 32 fused multiply-adds
LARGEST = 1 << 30  # bytes; far more than any cache
CHUNK = 64 << 20  # bytes of one transfer
REPORT_EVERY_S = 10.0
BATCH_S = 0.25  # a batch is at least so long, where it is no larger than MOST_AT_ONCE
MOST_AT_ONCE = 1024
_MULTIPROCESSOR_COUNT = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_NO_TIMES = 3  # CU_EVENT_BLOCKING_SYNC and CU_EVENT_DISABLE_TIMING

# Four sums that begin apart, so that no compiler finds them to be one. With a = b = 1 each counts
# its own steps, exactly: all of them stay below 2^24.
_FMA = """\
.visible .entry gpuboot_fma(.param .u64 pOut, .param .u32 pSteps, .param .f32 pA, .param .f32 pB)
{
  .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<7>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [pOut]; ld.param.u32 %r1, [pSteps]; ld.param.f32 %f1, [pA];
  ld.param.f32 %f2, [pB];
  mov.f32 %f3, 0f00000000; mov.f32 %f4, 0f3F800000; mov.f32 %f5, 0f40000000;
  mov.f32 %f6, 0f40400000;
STEP:
"""
_FMA += 8 * "".join(f"  fma.rn.f32 %f{i}, %f{i}, %f1, %f2;\n" for i in (3, 4, 5, 6))
_FMA += """\
  sub.u32 %r1, %r1, 1; setp.ne.u32 %p, %r1, 0; @%p bra STEP;
  add.f32 %f3, %f3, %f4; add.f32 %f5, %f5, %f6; add.f32 %f3, %f3, %f5;
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  cvta.to.global.u64 %rd1, %rd1; mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f3; ret;
}
"""
_COPY = """\
.visible .entry gpuboot_copy(.param .u64 pTo, .param .u64 pFrom, .param .u64 pPieces)
{
  .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [pTo]; ld.param.u64 %rd2, [pFrom]; ld.param.u64 %rd3, [pPieces];
  cvta.to.global.u64 %rd1, %rd1; cvta.to.global.u64 %rd2, %rd2;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %rd4, %r1, %r2; cvt.u64.u32 %rd5, %r3; add.u64 %rd4, %rd4, %rd5;
  mul.wide.u32 %rd5, %r4, %r2;
PIECE:
  setp.ge.u64 %p, %rd4, %rd3; @%p bra DONE;
  shl.b64 %rd6, %rd4, 4; add.u64 %rd7, %rd2, %rd6; add.u64 %rd8, %rd1, %rd6;
  ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd7];
  st.global.v4.u32 [%rd8], {%r5, %r6, %r7, %r8};
  add.u64 %rd4, %rd4, %rd5; bra PIECE;
DONE: ret;
}
"""
PTX = ".version 6.0\n.target sm_50\n.address_size 64\n" + _FMA + _COPY


class LoadError(Exception):
    """The driver refused something, or a result is wrong."""


class Gpu:
    """The first GPU that CUDA shows, with a context of this process."""

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise LoadError(f"the CUDA driver's library: {error}") from None
        self.call("cuInit", 0)
        device, context, count = c_int(), c_void_p(), c_int()
        self.call("cuDeviceGet", byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuDeviceGetAttribute", byref(count), _MULTIPROCESSOR_COUNT, device)
        self.blocks = BLOCKS_OF_SM * count.value

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver's library. Raises `LoadError` with the driver's name."""
        code = getattr(self._cuda, name)(*arguments)
        if code:
            error_name = ctypes.c_char_p()
            self._cuda.cuGetErrorName(code, byref(error_name))
            raise LoadError(f"{name}: {(error_name.value or b'unknown error').decode()} ({code})")

    def memory(self, size: int) -> c_uint64:
        """Allocate bytes of the GPU's own memory."""
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address

    def host_memory(self, size: int) -> c_void_p:
        """Allocate bytes of the host's memory, which the GPU can reach by itself."""
        address = c_void_p()
        self.call("cuMemHostAlloc", byref(address), c_size_t(size), 0)
        return address

    def stream(self) -> c_void_p:
        """A queue of copies beside all others."""
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), _NON_BLOCKING)
        return stream

    def event(self, stream: c_void_p | None) -> c_void_p:
        """An event that comes when all that is queued in a stream by now is done."""
        event = c_void_p()
        self.call("cuEventCreate", byref(event), _NO_TIMES)
        self.call("cuEventRecord", event, stream)
        return event

    def wait(self, event: c_void_p) -> None:
        """Wait until an event has come, without the CPU being busy."""
        self.call("cuEventSynchronize", event)
        self.call("cuEventDestroy_v2", event)

    def kernel(self, name: str) -> c_void_p:
        """A kernel of `PTX`."""
        module, function = c_void_p(), c_void_p()
        self.call("cuModuleLoadData", byref(module), ctypes.c_char_p(PTX.encode()))
        self.call("cuModuleGetFunction", byref(function), module, ctypes.c_char_p(name.encode()))
        return function

    def launch(self, kernel: c_void_p, *arguments: Any) -> None:
        """Run a kernel on all of the GPU, behind those before it."""
        addresses = (ctypes.cast(byref(argument), c_void_p) for argument in arguments)
        pointers = (c_void_p * len(arguments))(*addresses)
        size = (self.blocks, 1, 1, BLOCK, 1, 1, 0)
        self.call("cuLaunchKernel", kernel, *size, None, pointers, None)

    def put(self, address: int, data: bytes) -> None:
        self.call("cuMemcpyHtoD_v2", c_uint64(address), data, c_size_t(len(data)))

    def get(self, address: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, c_uint64(address), c_size_t(size))
        return data.raw


class Work:
    """Work that can be queued again and again. + amount: of one launch, bytes or operations"""

    unit = "GB/s"
    amount = 0.0

    def queue(self, launches: int) -> list[c_void_p]:
        """Queue so many launches or copies; events that come when they are done."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise `LoadError` where the work has not left what it must."""


class Compute(Work):
    """Fused multiply-adds in single precision, in registers."""

    unit = "gflops"

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._threads = gpu.blocks * BLOCK
        self._out = gpu.memory(4 * self._threads)
        self._kernel = gpu.kernel("gpuboot_fma")
        self.amount = float(self._threads * STEPS * FLOP_OF_STEP)

    def queue(self, launches: int) -> list[c_void_p]:
        arguments = (self._out, c_uint32(STEPS), c_float(1), c_float(1))
        for _ in range(launches):
            self._gpu.launch(self._kernel, *arguments)
        return [self._gpu.event(None)]

    def check(self) -> None:
        for thread in (0, self._threads - 1):
            data = self._gpu.get(self._out.value + 4 * thread, 4)
            result = c_float.from_buffer_copy(data).value
            if result != 32 * STEPS + 6:
                raise LoadError(f"wrong result of thread {thread}: {result}, not {32 * STEPS + 6}")


class Memory(Work):
    """Copies from one half of a large part of the GPU's memory to the other."""

    def __init__(self, gpu: Gpu) -> None:
        free, total = c_size_t(), c_size_t()
        gpu.call("cuMemGetInfo_v2", byref(free), byref(total))
        self._gpu = gpu
        self._size = min(LARGEST, free.value // 4) & ~0xFFF
        self._from, self._to = gpu.memory(self._size), gpu.memory(self._size)
        self._kernel = gpu.kernel("gpuboot_copy")
        self._ends = (0, self._size - 16)
        self.amount = 2.0 * self._size  # read and written
        for end in self._ends:
            gpu.put(self._from.value + end, b"gpuboot load %3d" % (end % 997))

    def queue(self, launches: int) -> list[c_void_p]:
        arguments = (self._to, self._from, c_uint64(self._size // 16))
        for _ in range(launches):
            self._gpu.launch(self._kernel, *arguments)
        return [self._gpu.event(None)]

    def check(self) -> None:
        for end in self._ends:
            if self._gpu.get(self._to.value + end, 16) != self._gpu.get(self._from.value + end, 16):
                raise LoadError(f"wrong result: what was copied differs at byte {end}")


class Transfer(Work):
    """Copies from the host to the GPU and back, both at once."""

    amount = 2.0 * CHUNK

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._streams = (gpu.stream(), gpu.stream())
        self._host = (gpu.host_memory(CHUNK), gpu.host_memory(CHUNK))
        self._device = (gpu.memory(CHUNK), gpu.memory(CHUNK))
        self._pattern = b"gpuboot transfer"
        ctypes.memmove(self._host[0], self._pattern, 16)
        gpu.put(self._device[1].value, self._pattern)

    def queue(self, launches: int) -> list[c_void_p]:
        size = c_size_t(CHUNK)
        upload, back = self._streams
        for _ in range(launches):
            self._gpu.call("cuMemcpyHtoDAsync_v2", self._device[0], self._host[0], size, upload)
            self._gpu.call("cuMemcpyDtoHAsync_v2", self._host[1], self._device[1], size, back)
        return [self._gpu.event(stream) for stream in self._streams]

    def check(self) -> None:
        contents = self._gpu.get(self._device[0].value, 16), ctypes.string_at(self._host[1], 16)
        if contents != (self._pattern, self._pattern):
            raise LoadError("wrong result: what was transferred differs")


WORK: dict[int, Callable[[Gpu], Work]] = {1004: Compute, 1005: Memory, 1010: Transfer}


def run(gpu: Gpu, work: Work, seconds: float, say: Callable[[str], None]) -> None:
    """Work for some seconds; how much it was. Raises `LoadError`.

    The next batch is queued before the last one is done, so that the GPU never waits for us.
    """
    started = reported = time.monotonic()
    launches, size = 0, 1
    queued = [(size, work.queue(size)) for _ in range(2)]
    while queued:
        before = time.monotonic()
        count, events = queued.pop(0)
        for event in events:
            gpu.wait(event)
        launches += count
        now = time.monotonic()
        if now - started < seconds:
            size = min(2 * size, MOST_AT_ONCE) if now - before < BATCH_S else size
            queued.append((size, work.queue(size)))
        if now - reported >= REPORT_EVERY_S or not queued:
            work.check()
            elapsed, reported = now - started, now
            rate = launches * work.amount / elapsed / 1e9
            say(f"generated ???, dcgm 0.000 ({rate:.1f} {work.unit})")


def main() -> int:
    """Run the program; its exit code."""
    options = dict(zip(sys.argv[2::2], sys.argv[3::2], strict=True))
    os.environ["CUDA_VISIBLE_DEVICES"] = options["-i"]
    worker = f"Worker {options['-i']}:0[{options['-t']}]"
    try:
        gpu = Gpu()
        work = WORK[int(options["-t"])](gpu)
        seconds = float(options["-d"])
        run(gpu, work, seconds, lambda line: print(f"{worker}: {line}", flush=True))
    except LoadError as error:
        print(f"failed: {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
