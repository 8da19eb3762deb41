# SPDX-License-Identifier: Apache-2.0
"""Fits the polynomials of src/device/epilogue/math.cuh and prints them with their errors.

Needs numpy and scipy. Each polynomial minimises the largest weighted error over its interval (Lawson's
iteration); the second figure is the error of the whole function when every step is rounded to float,
in units of 2^-24.
"""

import numpy as np
from scipy.special import erf, erfc, log_ndtr

UNIT = 2.0**-24


def fit(x, y, weight, degree, rounds=400):
    """Coefficients, lowest first, of the polynomial whose largest weight * error is least."""
    scale = np.abs(x).max()
    powers = np.vander(x / scale, degree + 1, increasing=True)
    emphasis = np.ones_like(x)
    for _ in range(rounds):
        root = np.sqrt(emphasis) * weight
        coefficients = np.linalg.lstsq(powers * root[:, None], y * root, rcond=None)[0]
        error = np.abs((powers @ coefficients - y) * weight)
        emphasis *= error / error.max() + 1e-9
        emphasis /= emphasis.sum()
    return (coefficients / scale ** np.arange(degree + 1)).astype(np.float32)


def evaluate(coefficients, x):
    """Evaluates by fused steps, each rounded to float, like the device."""
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = (total.astype(np.float64) * x + coefficient).astype(np.float32)
    return total


def show(name, coefficients, error):
    print(f"{name}: {error:.2f}")
    print("   ", ", ".join(f"{float(c):.9g}F" for c in coefficients))


def log2_normal_tail(a):
    return log_ndtr(-a) / np.log(2)


def fit_deficit(name, log2_tail, last, degree):
    """a 2^p(a), the difference between a function and max(a, 0), from 0 to last."""
    x = np.linspace(0, last, 4001)
    wanted = log2_tail(x)
    # An absolute error where the function is large, a relative one of 2^-11 where it is tiny.
    absolute = np.exp2(wanted) * x / np.maximum(1, x) / UNIT
    coefficients = fit(x, wanted, np.log(2) * np.maximum(absolute, 2.0**11), degree)
    a = np.linspace(0, 2 * last, 400001).astype(np.float32)
    got = np.exp2(evaluate(coefficients, a).astype(np.float64))
    error = a * np.abs(got - np.exp2(log2_tail(a.astype(np.float64))))
    show(f"log2_tail of {name}", coefficients, (error / np.maximum(1, a)).max() / UNIT)


def fit_brief_deficit(name, log2_tail, last, degree):
    """The same with a relative error, plus an absolute one of 2^-13 times that."""
    x = np.linspace(0, last, 3001)
    wanted = log2_tail(x)
    power = np.exp2(wanted)
    weight = np.log(2) * power / (power + 2.0**-13 / np.maximum(x, 1e-3))
    coefficients = fit(x, wanted, weight, degree, rounds=200)
    a = np.linspace(1e-6, 40, 400001).astype(np.float32)
    size = np.minimum(a, np.float32(13.5))
    got = size * np.exp2(evaluate(coefficients, size).astype(np.float64))
    exact = a * np.exp2(log2_tail(a.astype(np.float64)))
    show(f"log2_tail of {name}", coefficients, (np.abs(got - exact) / (exact + 2.0**-13)).max() / UNIT)


def fit_near_zero(name, function, last, degree, takes_first_term):
    """function(x) = x p(x^2), or x + x^3 p(x^2)."""
    x = np.linspace(1e-4, last, 3000)
    square = x * x
    if takes_first_term:
        y, weight = (function(x) / x - 1) / square, square * x / function(x) / UNIT
    else:
        y, weight = function(x) / x, x / function(x) / UNIT
    coefficients = fit(square, y, weight, degree)
    a = np.linspace(1e-4, last, 200001).astype(np.float32)
    square = (a * a).astype(np.float32)
    p = evaluate(coefficients, square).astype(np.float64)
    if takes_first_term:
        p = (p * square).astype(np.float32).astype(np.float64) * a + a
    else:
        p = p * a
    error = np.abs(p.astype(np.float32) / function(a.astype(np.float64)) - 1)
    show(f"small of {name}", coefficients, error.max() / UNIT)


def fit_erfc():
    x = np.linspace(0.9, 4.2, 4001)
    coefficients = fit(x, np.log2(erfc(x)), np.log(2) * erfc(x) / erf(x) / UNIT + 0.02, 7)
    a = np.linspace(0.9, 10, 200001).astype(np.float32)
    got = (1 - np.exp2(evaluate(coefficients, a).astype(np.float64))).astype(np.float32)
    show("log2_erfc of erf", coefficients, np.abs(got / erf(a.astype(np.float64)) - 1).max() / UNIT)


def fit_log():
    side = np.linspace(1e-3, 1 / 3, 2000)
    x = np.concatenate([-side[::-1], side])
    coefficients = fit(x, (np.log1p(x) - x) / x**2, np.abs(x**2 / np.log1p(x)) / UNIT, 8)
    a = np.linspace(-1 / 3, 1 / 3, 200001).astype(np.float32)
    a = a[np.abs(a) > 1e-6]
    p = (evaluate(coefficients, a).astype(np.float64) * a).astype(np.float32)
    got = (p.astype(np.float64) * a + a).astype(np.float32)
    show("p of log", coefficients, np.abs(got / np.log1p(a.astype(np.float64)) - 1).max() / UNIT)


def fit_log1p():
    x = (1 - np.cos(np.linspace(1e-3, np.pi, 3001))) / 2
    coefficients = fit(x, np.log1p(x) / x, x / np.log1p(x) / UNIT, 8)
    a = np.linspace(1e-6, 1, 200001).astype(np.float32)
    got = (evaluate(coefficients, a).astype(np.float64) * a).astype(np.float32)
    error = np.abs(got / np.log1p(a.astype(np.float64)) - 1).max() / UNIT
    show("log1p_over_power of log1p_exp_minus", coefficients, error)


if __name__ == "__main__":
    fit_deficit("gelu_deficit", log2_normal_tail, last=5.5, degree=6)
    fit_brief_deficit("brief_gelu_deficit", log2_normal_tail, last=5.2, degree=4)
    fit_near_zero("erf", erf, 0.95, 5, takes_first_term=False)
    fit_erfc()
    fit_near_zero("tanh", np.tanh, 0.6, 4, takes_first_term=True)
    fit_log()
    fit_log1p()
