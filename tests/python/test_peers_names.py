# SPDX-License-Identifier: Apache-2.0
"""The names of cutlass_api and similar packages, one by one: they exist and have the same meaning."""

import importlib
import inspect

import numpy as np
import pytest

import gemmery
from gemmery import fusion, metadata, providers, utils
from gemmery._other_names import OTHER_NAMES

# Sub-module -> names -> their attributes; "" is the package itself.
NAMES = {
    "": {
        "get_kernels": [],
        "Manifest": ["add_kernels", "get_kernels"],
        "Status": ["success", "fail", "raise_on_error"],
        "Kernel": [
            *["metadata", "supports", "compile", "run", "get_workspace_size", "initialize_workspace", "generate_kernels"],
            *["_supports", "_run"],
        ],
        "KernelMetadata": ["supports"],
        "RuntimeArguments": [],
        "GemmArguments": ["to_operands_metadata"],
        "ElementwiseArguments": [],
        "EpilogueArguments": ["tensors", "parameters", "parameter_names", "trace", "to_tensor_wrappers", "add_batch_modes"],
        "PerformanceControls": [],
        "CompiledArtifact": ["compiled_obj", "kernel_obj"],
    },
    "arguments": {
        **{"RuntimeArguments": [], "GemmArguments": [], "ElementwiseArguments": []},
        **{"EpilogueArguments": [], "PerformanceControls": []},
    },
    "artifact": {"CompiledArtifact": ["compiled_obj", "kernel_obj"]},
    "config": {"GlobalOptions": ["use_tvm_ffi", "save", "restore"]},
    "kernel": {"Kernel": []},
    "manifest": {"Manifest": []},
    "metadata": {
        "KernelMetadata": ["supports"],
        "TensorAttributes": ["supports", "from_tensor"],
        "GemmOperandsMetadata": ["supports"],
        "ElementwiseOperandsMetadata": ["supports"],
        "DesignMetadata": [],
        "BLASDesignMetadata": [],
        "Sm100DesignMetadata": [],
        "EpilogueMetadata": ["supports", "from_args"],
    },
    "providers": {"available_providers": [], "register_provider": [], "CuTeDSLProvider": ["register"]},
    "providers.cutedsl.kernel": {"CuteDslKernel": ["cute_compile", "cute_run"]},
    "status": {"Status": []},
    "typing": {"TensorLike": [], "NumericLike": []},
    "utils": dict.fromkeys(
        [
            *["device_cc", "is_device_cc_supported", "to_cuda_stream", "to_cutlass_type", "strides_to_layout_string"],
            *["tuple_to_string", "TensorWrapper", "add_batch_mode", "permute_batch_mode", "leading_dim", "get_stride_order"],
        ],
        (),
    ),
    "fusion": {"trace": [], "trace_in_out": []},
    "fusion.activation": dict.fromkeys(
        ["identity", "relu", "leaky_relu", "tanh", "sigmoid", "silu", "hardswish", "gelu"], ()
    ),
}  # fmt: skip

# Parameters in order; those after "*" are keyword-only.
SIGNATURES = {
    "get_kernels": "args metadata_filter cc providers",
    "Manifest.add_kernels": "self args metadata_filter cc providers",
    "Kernel.supports": "self args",
    "Kernel.compile": "self args cc",
    "Kernel.run": "self args compiled_artifact stream workspace assume_supported_args",
    "Kernel.get_workspace_size": "self args",
    "Kernel.initialize_workspace": "self args workspace",
    "Kernel.generate_kernels": "metadata_filter epilogue_args cc",
    "Kernel._supports": "self args",
    "Kernel._run": "self args artifact stream workspace",
    "KernelMetadata": "kernel_name kernel_class min_cc operands design epilogue",
    "metadata.TensorAttributes": "dtype stride alignment",
    "metadata.GemmOperandsMetadata": "A B out accumulator_type",
    "metadata.ElementwiseOperandsMetadata": "A B out",
    "metadata.BLASDesignMetadata": "tile_shape cluster_shape",
    "Status": "error",
    "EpilogueArguments.trace": "self accumulator_shape accumulator_type",
    "EpilogueArguments.to_tensor_wrappers": "self permute",
}


@pytest.mark.parametrize("module", NAMES)
def test_every_name_is_there_and_a_sub_module_is_an_attribute(module):
    place = gemmery
    for step in filter(None, module.split(".")):
        place = getattr(place, step, None) or importlib.import_module(f"{place.__name__}.{step}")
    missing = [name for name in NAMES[module] if not hasattr(place, name)]
    missing += [
        f"{name}.{of}" for name, parts in NAMES[module].items() for of in parts if not hasattr(getattr(place, name), of)
    ]
    assert [name for name in missing if name not in INSTANCES] == []


# Attributes of objects, not of classes.
INSTANCES = ["CompiledArtifact.compiled_obj", "CompiledArtifact.kernel_obj"]


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_stand_in_the_same_order(name):
    found = gemmery
    for step in name.split("."):
        found = getattr(found, step)
    parameters = [p.name for p in inspect.signature(found).parameters.values() if p.kind is not p.VAR_KEYWORD]
    expected = SIGNATURES[name].split()
    assert parameters[: len(expected)] == expected


# --- fusion.trace_in_out --------------------------------------------------------------------------


def peers_form(accum, C, alpha, beta):
    F = fusion.relu(accum * alpha)
    D = F + beta * C
    return D, F


@pytest.mark.parametrize(
    ("given", "inputs", "outputs"),
    [
        (peers_form, ["C", "alpha", "beta"], ["D", "F"]),
        (lambda accum, second, first: first * accum + second, ["second", "first"], ["D"]),
        (lambda first, accum: accum + first, ["first"], ["D"]),
        (lambda accum: {"D": accum, "copy": accum * 2}, [], ["D", "copy"]),
        ("D = gelu(accum + bias); peak = max(abs(D))", ["bias"], ["D", "peak"]),
        ("def f(accum, C, alpha):\n    D = alpha * accum + C\n    return D\n", None, ["D"]),
    ],
)
def test_the_names_of_a_program_are_told_apart(given, inputs, outputs):
    found = fusion.trace_in_out(given)
    assert found[1] == outputs
    assert found[0] == inputs if inputs is not None else set(found[0]) == {"C", "alpha"}


def test_a_program_tells_its_own_names():
    assert fusion.trace_in_out(gemmery.Program("D = scale * accum")) == (["scale"], ["D"])


def test_a_parameter_with_a_default_is_an_input_where_something_is_bound_to_it():
    def scaled(accum, slope=0.5):
        return accum * slope

    assert fusion.trace_in_out(scaled) == ([], ["D"])
    assert fusion.trace_in_out(scaled, ["slope"]) == (["slope"], ["D"])


def test_what_cannot_be_traced_has_no_names():
    with pytest.raises(ValueError, match="where"):
        fusion.trace_in_out(lambda accum: accum if accum > 0 else -accum)


# --- EpilogueArguments ----------------------------------------------------------------------------


@pytest.fixture
def bound(rng):
    """The form of cutlass_api, with a matrix, a number, and two results."""
    C, D, F = (rng.standard_normal((6, 8)).astype("f4") for _ in range(3))
    return gemmery.EpilogueArguments(peers_form, C=C, alpha=0.5, beta=2.0, D=D, F=F)


def test_parameters_are_what_is_read_and_then_the_results(bound):
    assert set(bound.parameter_names[:3]) == {"C", "alpha", "beta"}
    assert bound.parameter_names[3:] == ["D", "F"]
    assert all(value is bound.operands[name] for name, value in zip(bound.parameter_names, bound.parameters, strict=True))


def test_tensors_are_shown_as_views_of_one_kind(bound):
    bound.to_tensor_wrappers()
    assert all(isinstance(tensor, utils.TensorWrapper) for tensor in bound.tensors.values())
    assert bound.tensors["C"].data_ptr == bound.operands["C"].ctypes.data
    assert bound.parameters[bound.parameter_names.index("C")] is bound.tensors["C"]
    assert 0.5 in bound.parameters


def test_batches_are_added_and_dimensions_permuted(bound):
    bound.add_batch_modes()
    assert bound.tensors["C"].shape == (1, 6, 8)
    bound.to_tensor_wrappers(permute=[1, 2, 0])
    assert bound.tensors["C"].shape == (6, 8, 1) and bound.tensors["C"].strides[:2] == (8, 1)
    bound.to_tensor_wrappers()
    assert bound.tensors["C"].shape == (6, 8, 1)
    with pytest.raises(ValueError, match="permute: expected the dimensions of"):
        bound.to_tensor_wrappers(permute=[0, 1])


def test_what_is_shown_changes_nothing_of_what_runs(bound, rng):
    a, b = rng.standard_normal((6, 5)).astype("f4"), rng.standard_normal((5, 8)).astype("f4")
    C, D, F = (bound.operands[name] for name in "CDF")
    bound.trace((6, 8), np.float32)
    bound.add_batch_modes()
    bound.to_tensor_wrappers(permute=[2, 1, 0])
    bound.trace((6, 8), np.float32)
    args = gemmery.GemmArguments(a, b, D, np.float32, epilogue=bound)
    gemmery.get_kernels(args)[0].run(args)
    first = np.maximum(a @ b * np.float32(0.5), 0)
    np.testing.assert_allclose(F, first, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(D, first + 2 * C, rtol=1e-5, atol=1e-5)


def test_vectors_stay_as_they_are_where_batches_are_added():
    bias = np.zeros(8, "f4")
    arguments = gemmery.EpilogueArguments("D = accum + bias", bias=bias)
    arguments.add_batch_modes()
    assert arguments.tensors["bias"] is bias


@pytest.mark.parametrize("accumulator_type", [np.float32, "f64", np.int32])
@pytest.mark.parametrize("shape", [(6, 8), (1, 6, 8), (3, 6, 8)])
def test_an_epilogue_is_held_against_sums_that_it_fits(shape, accumulator_type):
    arguments = gemmery.EpilogueArguments("D = accum + bias", bias=np.zeros((6, 1), "f4"))
    assert arguments.trace(shape, accumulator_type) == gemmery.Program("D = accum + bias")


@pytest.mark.parametrize("shape", [(7, 8), (8, 6), (6, 9), (6,), (), (2, 2, 6, 8)])
def test_an_epilogue_is_refused_for_sums_that_it_does_not_fit(bound, shape):
    with pytest.raises(ValueError, match=r"accumulator_shape|C|D|F"):
        bound.trace(shape, np.float32)


def test_staged_arguments_tell_as_much_of_their_epilogue(bound, rng):
    a, b = rng.standard_normal((6, 5)).astype("f4"), rng.standard_normal((5, 8)).astype("f4")
    args = gemmery.GemmArguments(a, b, bound.operands["D"], np.float32, epilogue=bound).to_device("emulated:h200")
    assert type(args.epilogue) is gemmery.EpilogueArguments
    assert args.epilogue.epilogue_fn is peers_form
    assert args.epilogue.parameter_names == bound.parameter_names
    assert {str(tensor.device) for tensor in args.epilogue.tensors.values()} == {"emulated:h200"}
    assert args.epilogue.tensors["C"].shape == (6, 8)


# --- metadata, providers, utils -------------------------------------------------------------------


def test_epilogue_metadata_is_made_of_arguments(bound):
    made = metadata.EpilogueMetadata(bound)
    assert made == metadata.EpilogueMetadata.from_args(bound) == metadata.EpilogueMetadata(bound.program)
    assert made.supports(bound)
    assert not made.supports(gemmery.EpilogueArguments("D = relu(accum)"))
    assert not made.supports(None)


def test_epilogue_metadata_of_a_text_is_that_of_its_program():
    made = metadata.EpilogueMetadata("D=relu( accum )")
    arguments = gemmery.EpilogueArguments(lambda accum: fusion.relu(accum))
    assert made.supports(arguments)
    a, out = np.zeros((4, 4), "f4"), np.zeros((4, 4), "f4")
    assert made.supports(gemmery.GemmArguments(a, a, out, epilogue=arguments))
    assert not made.supports(gemmery.GemmArguments(a, a, out))


def test_providers_are_looked_up_by_name():
    available = providers.available_providers
    assert list(available) == available() and len(available) == len(available())
    assert "host" in available and "nobody" not in available
    a, out = np.zeros((4, 4), "f4"), np.zeros((4, 4), "f4")
    args = gemmery.GemmArguments(a, a, out)
    assert gemmery.get_kernels(args, providers=["host"]) == gemmery.get_kernels(args, providers=[available["host"]])
    with pytest.raises(KeyError):
        available["nobody"]


def test_types_of_the_cute_dsl_are_found_or_named_as_missing():
    if importlib.util.find_spec("cutlass") is None:
        with pytest.raises(RuntimeError, match="nvidia-cutlass-dsl"):
            utils.to_cutlass_type("f16")
    else:
        assert utils.to_gemmery_type(utils.to_cutlass_type("f16")) == gemmery.float16
    with pytest.raises(ValueError, match="element type"):
        utils.to_cutlass_type("no type")


@pytest.mark.parametrize("make", [np.asarray, gemmery.as_tensor])
def test_matrices_become_batches_and_batches_are_permuted(make, rng):
    matrix = rng.standard_normal((4, 6))[:, ::2]
    batch = utils.add_batch_mode(make(matrix))
    assert tuple(batch.shape) == (1, 4, 3)
    assert utils.add_batch_mode(batch) is batch
    last = utils.permute_batch_mode(batch)
    assert tuple(last.shape) == (4, 3, 1)
    np.testing.assert_array_equal(np.from_dlpack(last)[..., 0], matrix)
    for wrong in (matrix[0], matrix[None, None]):
        with pytest.raises(ValueError, match="rank"):
            utils.add_batch_mode(make(wrong))
    with pytest.raises(ValueError, match="rank"):
        utils.permute_batch_mode(make(matrix))


def test_views_without_memory_are_not_relaid():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    fake = gemmery.as_tensor(torch.empty(4, 6, device="meta"))
    with pytest.raises(ValueError, match="meta"):
        utils.add_batch_mode(fake)


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_name_of_their_later_interface_is_refused_with_ours(name):
    with pytest.raises(AttributeError, match=f"'{name}'; here: "):
        getattr(gemmery, name)
    assert name not in dir(gemmery)
    place, _, of_it = OTHER_NAMES[name].partition(" ")[0].rstrip(";,").rpartition(".")
    if place.startswith("gemmery"):
        assert hasattr(importlib.import_module(place), of_it)
