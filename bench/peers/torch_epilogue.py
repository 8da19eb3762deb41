# SPDX-License-Identifier: Apache-2.0
"""What torch takes for a product and the operations behind it, one after the other, on the problems of bench/epilogue.

Prints one line for each problem and program: the median microseconds of the product alone and of the whole sequence, timed
in turn by CUDA events. Usage: python3 torch_epilogue.py [ROUNDS] [SAMPLE_MS]
"""

import statistics
import sys

import torch
import torch.nn.functional as functional

PROBLEMS = [(4096, 4096, 4096), (8192, 8192, 1024), (8192, 4096, 512)]


def sequences(a, b, bias, aux, out):
    """The programs of bench/epilogue as a torch user writes them, results in memory of their own."""

    def product():
        torch.mm(a, b, out=out)

    def gelu():
        return functional.gelu(torch.addmm(bias, a, b))

    def gelu_tanh():
        return functional.gelu(torch.addmm(bias, a, b), approximate="tanh")

    def residual_add():
        return torch.addmm(aux, a, b)

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
        "sigmoid * aux": sigmoid_times_aux,
        "bias + gelu, amax": gelu_with_amax,
    }


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
        print(f"  {name:18} {median:7.1f} us, {median / product:.3f} of torch's product", flush=True)


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
