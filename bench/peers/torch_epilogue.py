# SPDX-License-Identifier: Apache-2.0
"""Times torch on a matrix product followed by separate operations, on the problems of bench/epilogue, and beside
it, if the package gemmery is installed, the first kernel of discovery for the same program.

Prints one line for each problem and program: median microseconds, interleaved, by CUDA events; for gemmery also the median
of its ratios to torch's sequence within a round. Usage: python3 torch_epilogue.py [ROUNDS] [SAMPLE_MS]
"""

import statistics
import sys

import torch
import torch.nn.functional as functional

try:
    import gemmery
except ImportError:
    gemmery = None

PROBLEMS = [(4096, 4096, 4096), (8192, 8192, 1024), (8192, 4096, 512)]


def sequences(a, b, bias, aux, out):
    """The programs of bench/epilogue as a torch user writes them, with preallocated results."""

    def product():
        torch.mm(a, b, out=out)

    def gelu():
        return functional.gelu(torch.addmm(bias, a, b))

    def gelu_tanh():
        return functional.gelu(torch.addmm(bias, a, b), approximate="tanh")

    def residual_add():
        return torch.addmm(aux, a, b)

    def residual_apart():
        return torch.mm(a, b).add_(aux)

    def sigmoid_times_aux():
        return torch.mm(a, b).sigmoid_().mul_(aux)

    def gelu_with_amax():
        result = gelu()
        return result, torch.linalg.vector_norm(result, ord=float("inf"), dtype=torch.float32)

    return {
        "product": product,
        "bias + gelu": gelu,
        "bias + gelu_tanh": gelu_tanh,
        "residual add": residual_add,
        "residual, apart": residual_apart,
        "sigmoid * aux": sigmoid_times_aux,
        "bias + gelu, amax": gelu_with_amax,
    }


PROGRAMS = {
    "product": "D = accum",
    "bias + gelu": "D = gelu(accum + bias)",
    "bias + gelu_tanh": "D = gelu_tanh(accum + bias)",
    "residual add": "D = accum + aux",
    "residual, apart": "D = accum + aux",
    "sigmoid * aux": "D = sigmoid(accum) * aux",
    "bias + gelu, amax": "D = gelu(accum + bias); amax = max(abs(D))",
}


def fused(a, b, bias, aux, out):
    """The programs by gemmery, each by the first kernel of discovery."""
    operands = {"bias": bias, "aux": aux, "amax": torch.empty(1, device="cuda")}
    stream = torch.cuda.current_stream()

    def launch_of(text):
        bound = {name: tensor for name, tensor in operands.items() if name in text}
        epilogue = gemmery.EpilogueArguments(text, **bound) if text != PROGRAMS["product"] else None
        args = gemmery.GemmArguments(a, b, out, accumulator_type=torch.float32, epilogue=epilogue)
        launch = gemmery.get_kernels(args)[0].compile(args).bind(args)
        return lambda: launch(stream)

    return {name: launch_of(text) for name, text in PROGRAMS.items()}


def microseconds(function, runs):
    begin = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(runs):
        function()
    end.record()
    end.synchronize()
    return 1000 * begin.elapsed_time(end) / runs


def race(m, n, k, rounds, sample_ms):
    numbers = {"device": "cuda", "dtype": torch.bfloat16}
    a = torch.randn(m, k, **numbers)
    b = torch.randn(n, k, **numbers).t()
    bias = torch.randn(n, **numbers)
    aux = torch.randn(m, n, **numbers)
    out = torch.empty(m, n, **numbers)
    functions = sequences(a, b, bias, aux, out)
    if gemmery is not None:
        ours = fused(a, b, bias, aux, out)
        functions = {key: f for name in functions for key, f in ((name, functions[name]), ("gemmery: " + name, ours[name]))}
    runs = {}
    for name, function in functions.items():
        microseconds(function, 3)
        runs[name] = max(4, int(1000 * sample_ms / microseconds(function, 4)))
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(microseconds(function, runs[name]))
    print(f"bf16 {m}x{n}x{k}")
    product = statistics.median(times["product"])
    for name, samples in times.items():
        median = statistics.median(samples)
        if name.startswith("gemmery: "):
            ratios = sorted(mine / theirs for mine, theirs in zip(samples, times[name.removeprefix("gemmery: ")]))
            of_torch = f"{statistics.median(ratios):.3f} of torch's ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        else:
            of_torch = f"{median / product:.3f} of torch's product"
        print(f"  {name:27} {median:7.1f} us, {of_torch}", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sample_ms = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    if not torch.cuda.is_available():
        print("no GPU")
        return
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    for m, n, k in PROBLEMS:
        race(m, n, k, rounds, sample_ms)


main()
