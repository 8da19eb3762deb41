# SPDX-License-Identifier: Apache-2.0
"""Discovery, metadata, compiling and running, with cutlass_api's names; GPUs are emulated."""

import errno
import threading
import time

import numpy
import pytest

import gemmery

EMULATED = "emulated:h200"


@pytest.fixture
def on_emulator(gemm):
    args, exact = gemm(64, 32, 48)
    return args.to_device(EMULATED), args, exact


# --- discovery -----------------------------------------------------------------------------------


def test_kernels_come_best_first_and_end_with_the_reference(gemm):
    args, _ = gemm()
    kernels = gemmery.get_kernels(args)
    assert all(kernel.provider == "host" for kernel in kernels)
    predicted = [kernel.predicted_us for kernel in kernels]
    assert predicted == sorted(predicted)
    assert kernels[-1].family == "host_reference"


def test_a_cc_asks_about_a_device_that_is_not_here(gemm):
    args, _ = gemm()
    for cc in (90, "90", "sm_90", "h200"):
        kernels = gemmery.get_kernels(args, cc=cc)
        assert kernels and all(kernel.metadata.min_cc in range(80, 91) for kernel in kernels)
        assert kernels[-1].family == "simt"
    with pytest.raises(ValueError, match="sm_"):
        gemmery.get_kernels(args, cc="ninety")
    with pytest.raises(ValueError, match=r'got "hopper"; did you mean h200\?'):
        gemmery.get_kernels(args, cc="hopper")
    with pytest.raises(ValueError, match=r'got "sm90"; did you mean sm_90\?'):
        gemmery.get_kernels(args, cc="sm90")
    with pytest.raises(TypeError, match="cc: expected an int"):
        gemmery.get_kernels(args, cc=9.0)


@pytest.mark.parametrize("cc", [86, "103a", "sm_100f", 110, "120f", 121])
def test_every_architecture_since_ampere_has_kernels_with_and_without_arguments(gemm, cc):
    args, _ = gemm()
    assert gemmery.get_kernels(args, cc=cc)[-1].family == "simt"
    assert gemmery.get_kernels(cc=cc)


@pytest.mark.parametrize("cc", [61, 70, 75, 130])
def test_an_architecture_without_kernels_gives_an_empty_list_and_reasons(gemm, cc):
    args, _ = gemm()
    assert gemmery.get_kernels(args, cc=cc) == gemmery.get_kernels(cc=cc) == []
    assert "target: expected sm_80 to sm_121" in str(gemmery.explain(args, cc=cc))


def test_a_kernel_compiles_for_no_other_architecture_than_its_own():
    args = gemmery.GemmArguments(*(numpy.ones((64, 64), numpy.float16) for _ in range(3)))
    kernel = next(kernel for kernel in gemmery.get_kernels(args, cc="h200") if kernel.family == "sm90")
    for cc in (80, "sm_100", 121):
        with pytest.raises(gemmery.UnsupportedError, match="target: expected one of sm_90a, got sm_"):
            kernel.compile(cc=cc)


def test_providers_are_names_and_unknown_ones_list_the_known(gemm):
    args, _ = gemm()
    assert gemmery.get_kernels(args, providers=["host"]) == gemmery.get_kernels(args)
    assert gemmery.get_kernels(args, providers=["templates"]) == []
    with pytest.raises(ValueError, match=r'expected one of .*host.*triton.*got "frobnicator"'):
        gemmery.get_kernels(args, providers=["frobnicator"])
    with pytest.raises(TypeError):
        gemmery.get_kernels(args, providers="host")


def test_what_is_no_filter_is_a_type_error(gemm):
    args, _ = gemm()
    with pytest.raises(TypeError, match="metadata_filter: expected a function .* got int"):
        gemmery.get_kernels(args, metadata_filter=3)


@pytest.mark.parametrize("cc", ["h300", "sm", "", "90aa"])
def test_what_is_no_device_and_no_target_is_refused_with_the_devices(gemm, cc):
    args, _ = gemm()
    with pytest.raises(ValueError, match=r"^invalid argument: cc: expected .*(h200).*known devices: .*b200"):
        gemmery.get_kernels(args, cc=cc)


def test_an_architecture_or_a_slip_gets_the_device_that_was_meant():
    for word, meant in (("hopper", "h200"), ("Blackwell", "b200"), ("h20", "h200"), ("rtx490", "rtx4090")):
        with pytest.raises(ValueError, match=f"did you mean {meant}"):
            gemmery.device_info(word)
        with pytest.raises(ValueError, match=f"cc: .*did you mean {meant}"):
            gemmery.get_kernels(cc=word)


def test_facts_of_a_device_print_what_they_are():
    assert repr(gemmery.device_info("h200")) == "DeviceInfo(NVIDIA H200, sm_90, 132 multiprocessors)"


def test_an_artifact_prints_what_it_is(gemm):
    args, _ = gemm()
    kernel = gemmery.get_kernels(args)[0]
    assert repr(kernel.compile(args)) == f"CompiledArtifact({kernel!r} for cpu)"
    assert repr(gemmery.CompiledArtifact(None, "mine")) == "CompiledArtifact('mine')"


def test_a_filter_sees_metadata_and_its_errors_come_out(gemm):
    args, _ = gemm(64, 64, 64)
    wide = gemmery.get_kernels(args, lambda metadata: metadata.design.tile_shape[1] >= 64, cc=90)
    assert wide and all(kernel.metadata.design.tile_shape[1] >= 64 for kernel in wide)
    with pytest.raises(AttributeError, match="this design has no 'tilt'"):
        gemmery.get_kernels(args, lambda metadata: metadata.design.tilt, cc=90)
    with pytest.raises(ZeroDivisionError):
        gemmery.get_kernels(args, lambda metadata: 1 / 0 > 0)


def test_a_filter_skips_kernels_without_the_field_that_it_reads(gemm):
    args, _ = gemm(64, 64, 64)
    assert gemmery.get_kernels(args, lambda metadata: metadata.design.tile_shape[1] >= 64) == []  # none of the CPU's have tiles
    with_tiles_of_threads = gemmery.get_kernels(args, lambda metadata: metadata.design.thread_tile, cc=90)
    assert {kernel.metadata.kernel_class for kernel in with_tiles_of_threads} == {"simt"}
    assert gemmery.get_kernels(args, lambda metadata: metadata.operands.C.dtype == gemmery.float32) == []


@pytest.mark.parametrize("cc", [None, 90])
def test_a_misspelled_field_of_a_filter_is_named_with_the_nearest(gemm, cc):
    args, _ = gemm(64, 64, 64)
    with pytest.raises(AttributeError, match=r"this design has no 'tile_shap'; it has .*; did you mean 'tile_shape'\?"):
        gemmery.get_kernels(args, lambda metadata: metadata.design.tile_shap[0] > 0, cc=cc)
    with pytest.raises(AttributeError, match="'desing'"):
        gemmery.get_kernels(args, lambda metadata: metadata.desing, cc=cc)
    with pytest.raises(AttributeError, match="'txt'"):
        gemmery.get_kernels(args, lambda metadata: metadata.epilogue.txt, cc=cc)


def test_without_arguments_every_kernel_of_a_target_is_listed():
    kernels = gemmery.get_kernels(cc="cpu", providers=["host"])
    assert len({kernel.name for kernel in kernels}) == len(kernels) > 10


def test_names_read_back(gemm):
    args, _ = gemm()
    for kernel in gemmery.get_kernels(args, cc=90)[:10] + gemmery.get_kernels(args):
        found = gemmery.find_kernel(kernel.name)
        assert found == kernel and hash(found) == hash(kernel) and found.name == kernel.name
    assert gemmery.find_kernel("no_such_kernel") is None


def test_explain_gives_a_reason_for_every_family(gemm):
    args, _ = gemm()
    explanation = gemmery.explain(args, cc=90)
    families = {reason.family for reason in explanation.reasons}
    assert {"simt", "sm90"} <= families
    assert all(reason.failed or reason.fitting for reason in explanation.reasons)
    assert "sm90" in str(explanation)


def test_a_manifest_gathers_kernels(gemm):
    args, _ = gemm()
    manifest = gemmery.Manifest()
    first = manifest.add_kernels(args)
    second = manifest.add_kernels(args, cc=90)
    assert manifest.kernels == first + second
    assert gemmery.Manifest.get_kernels(args) == first


# --- metadata ------------------------------------------------------------------------------------


def test_metadata_tells_operands_design_and_targets(gemm):
    args, _ = gemm(64, 64, 64)
    metadata = gemmery.get_kernels(args, cc=90)[0].metadata
    assert metadata.kernel_name and metadata.kernel_class in ("simt", "sm80", "sm90")
    assert metadata.operands.A.dtype is gemmery.float32 and metadata.operands.A.layout == "row"
    assert metadata.operands.accumulator_type is gemmery.float32
    assert isinstance(metadata.design, gemmery.metadata.BLASDesignMetadata)
    assert len(metadata.design.tile_shape) == 3 and len(metadata.design.cluster_shape) == 3
    assert metadata.epilogue is None
    assert metadata.supports(args.to_device(EMULATED))
    assert metadata.operands.supports(args)


def test_an_epilogue_is_part_of_metadata(gemm):
    args, _ = gemm()
    fused = gemmery.GemmArguments(args.A, args.B, args.out, epilogue=gemmery.EpilogueArguments("D = relu(accum)"))
    kernel = gemmery.get_kernels(fused)[0]
    assert kernel.metadata.epilogue.text == "D = relu(accum)"
    assert kernel.supports(fused) and not kernel.supports(args)
    assert not gemmery.get_kernels(args)[0].supports(fused)


def test_attributes_say_what_differs():
    attributes = gemmery.metadata.TensorAttributes.from_tensor(numpy.zeros((4, 6), "f"))
    assert (attributes.dtype, attributes.stride) == (gemmery.float32, (0, 0, 1))
    assert attributes.supports(numpy.zeros((4, 6), "f"))
    assert "element type" in str(attributes.supports(numpy.zeros((4, 6), "d")).error)
    row = gemmery.metadata.TensorAttributes(gemmery.float32, (0, 0, 1), 16)
    assert "stride[2]" in str(row.supports(numpy.zeros((6, 4), "f").T).error)
    assert "alignment" in str(row.supports(numpy.zeros((4, 7), "f")[:, 1:]).error)


def test_arguments_tell_their_operands_in_the_words_of_kernels():
    metadata = gemmery.metadata
    a, b = numpy.zeros((3, 8, 16), "f2"), numpy.zeros((12, 17), "f2")[:, 1:].T
    out, c = numpy.zeros((3, 8, 12), "f"), numpy.zeros((12,), "f")
    told = gemmery.GemmArguments(a, b, out, "f32", C=c, beta=1.0).to_operands_metadata()
    assert told == metadata.GemmOperandsMetadata(
        A=metadata.TensorAttributes.from_tensor(a),
        B=metadata.TensorAttributes.from_tensor(b),
        out=metadata.TensorAttributes.from_tensor(out),
        accumulator_type=gemmery.float32,
        C=told.C,
    )
    assert (told.A.layout, told.B.layout, told.C.dtype) == ("row", "column", gemmery.float32)
    assert told.B.alignment == 2, "an odd number of elements from one column to the next"
    assert told.supports(gemmery.GemmArguments(a, b, out, "f32"))

    added = gemmery.ElementwiseArguments(out, out.copy(), out.copy()).to_operands_metadata()
    attributes = metadata.TensorAttributes.from_tensor(out)
    assert added == metadata.ElementwiseOperandsMetadata(attributes, attributes, attributes)


# --- status --------------------------------------------------------------------------------------


def test_a_status_is_true_or_says_why_not():
    assert gemmery.Status.success() and gemmery.Status.success().error is None
    no = gemmery.Status.fail("because")
    assert not no and isinstance(no.error, ValueError)
    with pytest.raises(ValueError, match="because"):
        no.raise_on_error()
    gemmery.Status.success().raise_on_error()
    with pytest.raises(KeyError):
        gemmery.Status.fail(KeyError("x")).raise_on_error()


def test_supports_says_why_not(gemm):
    args, _ = gemm()
    half = gemmery.GemmArguments(args.A.astype("f2"), args.B.astype("f2"), args.out.astype("f2"))
    kernel = gemmery.get_kernels(args)[0]
    status = kernel.supports(half)
    assert not status and "float32" in str(status.error) and "float16" in str(status.error)
    with pytest.raises(ValueError, match="float16") as caught:
        kernel.run(half)
    assert isinstance(caught.value, gemmery.UnsupportedError)
    assert not gemmery.get_kernels(args, cc=90)[0].supports(args), "operands on the CPU"


# --- running -------------------------------------------------------------------------------------


def test_every_host_kernel_is_right(gemm, check):
    args, exact = gemm(65, 33, 70)
    for kernel in gemmery.get_kernels(args):
        args.out[:] = numpy.nan
        kernel.run(args, kernel.compile(args))
        check(args, kernel)
        numpy.testing.assert_allclose(args.out, exact, rtol=1e-4, atol=1e-4)


def test_run_takes_what_the_peers_take(gemm):
    args, exact = gemm()
    kernel = gemmery.get_kernels(args)[0]
    artifact = kernel.compile(args)
    workspace = numpy.zeros(max(kernel.get_workspace_size(args), 1), numpy.uint8)
    kernel.initialize_workspace(args, workspace)
    kernel.run(args, artifact, None, workspace, True)
    kernel.run(args, compiled_artifact=artifact, stream=None, workspace=workspace, assume_supported_args=False)
    numpy.testing.assert_allclose(args.out, exact, rtol=1e-4, atol=1e-4)
    assert artifact.kernel_obj is kernel and artifact.compiled_obj is artifact
    with pytest.raises(TypeError):
        kernel.run(args, "artifact")
    with pytest.raises(ValueError, match="workspace"):
        kernel.run(args, artifact, workspace=numpy.zeros((8, 8), numpy.uint8)[:, :3])
    read_only = numpy.zeros(8, numpy.uint8)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="workspace"):
        kernel.run(args, artifact, workspace=read_only)


def test_other_threads_run_while_a_kernel_does(rng):
    n = 700
    a, b = (rng.standard_normal((n, n)).astype(numpy.float32) for _ in range(2))
    args = gemmery.GemmArguments(a, b, numpy.zeros_like(a))
    reference = gemmery.get_kernels(args)[-1]
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.3:
        reference.run(args)
    end = time.perf_counter()
    stop.set()
    thread.join()
    inside = [t for t in ticks if begin < t < end]
    assert len(inside) > 20, "the GIL was held"


# --- an emulated GPU -----------------------------------------------------------------------------


def test_numpy_runs_on_a_gpu_by_staging(on_emulator):
    staged, args, exact = on_emulator
    assert staged.device == EMULATED and staged.out.device == EMULATED
    kernel = gemmery.get_kernels(staged)[0]
    assert kernel.metadata.min_cc >= 80
    kernel.run(staged, kernel.compile(staged))
    assert numpy.isnan(args.out).all(), "results come by sync only"
    staged.sync()
    numpy.testing.assert_allclose(args.out, exact, rtol=1e-4, atol=1e-4)
    assert gemmery.check_result(staged, kernel)


def test_staging_keeps_layouts_aliases_and_epilogues(rng, gemm):
    a, b = numpy.asfortranarray(rng.standard_normal((32, 16)).astype("f")), rng.standard_normal((16, 24)).astype("f")
    wide = numpy.zeros((32, 40), "f")
    out, bias, peak = wide[:, 5:29], rng.standard_normal(24).astype("f"), numpy.zeros(1, "f")
    epilogue = gemmery.EpilogueArguments("D = relu(accum + bias); peak = amax(D)", bias=bias, peak=peak)
    staged = gemmery.GemmArguments(a, b, out, epilogue=epilogue).to_device(EMULATED)
    assert staged.A.strides == (1, 32)
    gemmery.get_kernels(staged)[0].run(staged)
    staged.sync()
    expected = numpy.maximum(a.astype("d") @ b.astype("d") + bias, 0)
    numpy.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    numpy.testing.assert_allclose(peak, [expected.max()], rtol=1e-4)
    assert (wide[:, :5] == 0).all() and (wide[:, 29:] == 0).all()

    c = rng.standard_normal((32, 24)).astype("f")
    before = c.copy()
    in_place = gemmery.GemmArguments(a, b, c, C=c, beta=1.0).to_device(EMULATED)
    assert in_place.C.data_ptr == in_place.out.data_ptr
    gemmery.get_kernels(in_place)[0].run(in_place)
    in_place.sync()
    numpy.testing.assert_allclose(c, before + a @ b, rtol=1e-4, atol=1e-4)


def test_operands_that_only_a_dropped_result_reads_are_staged_away(rng):
    a, b, x = (rng.integers(-4, 5, shape).astype("f") for shape in ((8, 16), (16, 8), (8, 8)))
    out = numpy.zeros((8, 8), "f")
    epilogue = gemmery.EpilogueArguments("D = accum; r0 = x", x=x)
    staged = gemmery.GemmArguments(a, b, out, epilogue=epilogue).to_device(EMULATED)
    gemmery.get_kernels(staged)[0].run(staged)
    staged.sync()
    numpy.testing.assert_array_equal(out, a @ b)


def test_a_prepared_launch_is_patched(on_emulator, rng):
    staged, args, _ = on_emulator
    launch = gemmery.get_kernels(staged)[0].compile(staged).bind(staged)
    assert launch.args is staged
    other = gemmery.empty((64, 48), "f32", EMULATED)
    numbers = rng.standard_normal((64, 48)).astype("f")
    other.copy_from(numbers)
    launch.set_data("A", other)
    del other
    launch()
    launch.launch(stream=0)
    staged.sync()
    numpy.testing.assert_allclose(args.out, numbers @ args.B, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError):
        launch.set_data("A", 3)


def test_a_gpu_kernel_refuses_host_arrays(on_emulator):
    staged, args, _ = on_emulator
    kernel = gemmery.get_kernels(staged)[0]
    with pytest.raises(ValueError):
        kernel.run(args, kernel.compile(staged))


def test_memory_of_our_own_is_exchanged(rng):
    tensor = gemmery.empty((3, 5), "bf16")
    assert tensor.shape == (3, 5) and tensor.dtype is gemmery.bfloat16 and tensor.device == "cpu"
    single = gemmery.empty((4, 4), numpy.float32)
    numbers = rng.standard_normal((4, 4)).astype("f")
    single.copy_from(numbers)
    array = numpy.from_dlpack(single)
    assert (array == numbers).all()
    del single
    assert (array == numbers).all(), "the array keeps the memory"
    with pytest.raises(ValueError, match="source"):
        gemmery.empty((4, 4), "f32").copy_from(numbers[:2])
    with pytest.raises(BufferError, match="emulated"):
        numpy.from_dlpack(gemmery.empty((2,), "f32", EMULATED))


# --- compiling -----------------------------------------------------------------------------------


def test_the_code_of_a_kernel_can_be_looked_at(gemm, tmp_path):
    args, _ = gemm(64, 64, 64)
    artifact = gemmery.get_kernels(args, cc=90)[0].compile(args, cc=90)
    assert "#include <device/" in artifact.source and "#include <device/" not in artifact.source_with_headers
    assert ".version" in artifact.ptx and artifact.cubin[:4] == b"\x7fELF"
    artifact.save(tmp_path / "kernels.gemmery")
    (loaded,) = gemmery.artifact.load(tmp_path / "kernels.gemmery")
    assert loaded.cubin == artifact.cubin
    try:
        assert "EXIT" in artifact.sass()
    except gemmery.UnavailableError as error:
        assert "nvdisasm" in str(error)
    with pytest.raises(gemmery.UnsupportedError, match="CPU"):
        gemmery.get_kernels(args)[0].compile(args).ptx  # noqa: B018


def test_kernels_compile_for_devices_that_are_not_here(gemm, tmp_path):
    args, _ = gemm(64, 64, 64)
    kernel = gemmery.get_kernels(args, cc=90)[0]
    artifact = kernel.compile(args, cc=90)
    assert artifact.targets in (["sm_90"], ["sm_90a"]) and "__global__" in artifact.source
    assert artifact.compile_ms >= 0 and artifact.resources["registers"] > 0
    path = tmp_path / "kernels.gemmery"
    artifact.save(path, problems=[args.problem])
    loaded = gemmery.artifact.load(path)
    assert [one.kernel_obj for one in loaded] == [kernel] and loaded[0].targets == artifact.targets
    gemmery.artifact.save(path, loaded)
    with pytest.raises(OSError):
        gemmery.artifact.load(tmp_path / "absent")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(gemmery.FileError):
        gemmery.artifact.load(path)
    with pytest.raises(TypeError, match="compile"):
        kernel.compile()


def test_a_saved_kernel_runs_without_a_compiler(on_emulator, tmp_path):
    staged, args, exact = on_emulator
    kernel = gemmery.get_kernels(staged)[0]
    path = tmp_path / "kernels.gemmery"
    kernel.compile(staged).save(path, with_ptx=True)
    (artifact,) = gemmery.artifact.load(path)
    artifact.kernel_obj.run(staged, artifact)
    staged.sync()
    numpy.testing.assert_allclose(args.out, exact, rtol=1e-4, atol=1e-4)


def test_many_compile_side_by_side(gemm):
    args, _ = gemm(64, 64, 64)
    kernels = gemmery.get_kernels(args, cc=90)[:3]
    seen = []
    artifacts = gemmery.compile_all(kernels, 90, jobs=2, progress=lambda done, all: seen.append((done, all)))
    assert [artifact.kernel_obj for artifact in artifacts] == kernels
    assert sorted(seen) == [(1, 3), (2, 3), (3, 3)]
    host = gemmery.get_kernels(args)[0]
    mixed = gemmery.compile_all([host, kernels[0]], 90)
    assert isinstance(mixed[1], gemmery.CompiledArtifact)
    with pytest.raises(ZeroDivisionError):
        gemmery.compile_all(kernels, 90, progress=lambda done, all: 1 / 0)


# --- checks --------------------------------------------------------------------------------------


def test_verify_and_measure_run_problems():
    kernel = gemmery.find_kernel("host_plain_v1_f32_f32_out_f32_acc_f32_c_none_math_native")
    report = gemmery.verify(kernel, "gemm 40x30x20 a=f32", seed=7)
    assert report and report.passed and report.seed == 7 and report.elements == 1200
    times = gemmery.measure(kernel, "gemm 40x30x20 a=f32", samples=3, sample_ms=0.5)
    assert 0 < times["minimum_us"] <= times["median_us"] <= times["maximum_us"]
    with pytest.raises(ValueError, match="fill"):
        gemmery.verify(kernel, "gemm 4x4x4 a=f32", fill="zeros")


def test_a_wrong_result_is_found(gemm):
    args, _ = gemm()
    kernel = gemmery.get_kernels(args)[0]
    kernel.run(args)
    args.out[3, 4] += 1
    report = gemmery.check_result(args, kernel)
    assert not report and report.mismatches == 1 and "3" in report.first_failure


def test_run_verifies_on_request(gemm, on_emulator):
    args, _ = gemm()
    kernel = gemmery.get_kernels(args)[0]
    kernel.run(args, verify=True)
    staged = on_emulator[0]
    gemmery.get_kernels(staged)[0].run(staged, verify=True)
    in_place = gemmery.GemmArguments(args.A, args.B, args.out, C=args.out, beta=1.0)
    before = args.out.copy()
    with pytest.raises(gemmery.UnsupportedError, match="overwritten in place"):
        gemmery.get_kernels(in_place)[0].run(in_place, verify=True)
    assert (args.out == before).all(), "refused before it ran"


def test_what_was_overwritten_cannot_be_checked(rng, gemm):
    args, _ = gemm()
    in_place = gemmery.GemmArguments(args.A, args.B, args.out, C=args.out, beta=1.0)
    with pytest.raises(gemmery.UnsupportedError, match="overwritten in place"):
        gemmery.check_result(in_place, gemmery.get_kernels(in_place)[0])


# --- the rest of the surface ---------------------------------------------------------------------


def test_facts_of_devices_and_the_machine():
    h200 = gemmery.device_info("h200")
    assert (h200.cc, h200.multiprocessors) == (90, 132)
    assert gemmery.device_info("cpu").cc == 0
    for device, facts in (("h200", ""), ("gb10", "clock"), (EMULATED, ""), ("emulated:gb10", "clock"), ("cpu", "")):
        assert gemmery.device_info(device).unconfirmed_facts == facts
    assert "gemmery" in gemmery.doctor()
    assert not gemmery.utils.is_device_cc_supported({10}) and gemmery.utils.is_device_cc_supported({90}, EMULATED)
    assert gemmery.utils.device_cc(EMULATED) == 90
    with pytest.raises(RuntimeError):
        gemmery.utils.device_cc(99)


def test_the_cache_is_told_about():
    report = gemmery.cache.report()
    assert {"folder", "is_usable", "entries", "bytes"} <= report.keys()


def test_small_questions(monkeypatch):
    monkeypatch.setattr(gemmery._ignored, "_told", set())  # warnings that other tests have caused
    utils = gemmery.utils
    assert utils.tuple_to_string((128, 64)) == "128x64"
    assert utils.leading_dim(numpy.zeros((3, 4))) == 1 and utils.leading_dim(numpy.zeros((3, 4)).T) == 0
    assert utils.leading_dim(numpy.zeros((6, 8))[::2, ::2]) is None
    assert utils.get_stride_order((12, 4, 1)) == (2, 1, 0) and utils.get_stride_order((1, 4)) == (0, 1)
    assert utils.strides_to_layout_string((4, 1), (1, 4), (2, 3)) == "tnx"
    assert utils.add_batch_mode(numpy.zeros((3, 4))).shape == (1, 3, 4)
    assert utils.permute_batch_mode(numpy.zeros((2, 3, 4))).shape == (3, 4, 2)
    options = gemmery.config.GlobalOptions()
    assert options is gemmery.config.GlobalOptions() and options.use_tvm_ffi is False
    with pytest.warns(RuntimeWarning, match="use_tvm_ffi has no effect"):
        options.use_tvm_ffi = True
    options.use_tvm_ffi = True
    assert options.use_tvm_ffi is False
    options.restore(options.save())


def test_designs_for_blackwell_are_designs_with_two_choices_more():
    design = gemmery.metadata.Sm100DesignMetadata((256, 128, 64), (2, 1, 1), use_2cta_mma=True)
    assert isinstance(design, gemmery.metadata.BLASDesignMetadata)
    assert (design.tile_shape, design.cluster_shape) == ((256, 128, 64), (2, 1, 1))
    assert design.use_2cta_mma and not design.use_tma_store
    with pytest.raises(AttributeError, match="this design has no 'schedule'"):
        _ = design.schedule


def test_verify_and_measure_take_arguments_as_well_as_text(gemm):
    args, _ = gemm(8, 9, 10, alpha=2.0)
    kernel = gemmery.get_kernels(args)[0]
    before = args.out.copy()
    assert gemmery.verify(kernel, args).passed
    assert (
        gemmery.measure(kernel, args, samples=1, sample_ms=0.01).keys()
        == gemmery.measure(kernel, args.problem, samples=1, sample_ms=0.01).keys()
    )
    numpy.testing.assert_array_equal(args.out, before)  # only the problem is used
    with pytest.raises(TypeError, match="problem: expected a line of text or GemmArguments, got int"):
        gemmery.verify(kernel, 5)


def test_a_missing_file_is_pythons_error_too(tmp_path):
    path = tmp_path / "none.gemmery"
    with pytest.raises(FileNotFoundError, match="expected a file that can be read") as missing:
        gemmery.artifact.load(path)
    error = missing.value
    assert isinstance(error, gemmery.FileError)
    assert (error.errno, error.filename) == (errno.ENOENT, str(path))
