# SPDX-License-Identifier: Apache-2.0
"""Names of other libraries' later interfaces and their names in this package, for error hints."""

OTHER_NAMES = {
    "ArchPortability": "targets are texts: sm_90a",
    "CuTeDSLProvider": "gemmery.providers.CuTeDSLProvider",
    "DenseTensor": "pass the tensor itself",
    "GlobalOptions": "gemmery.config.GlobalOptions",
    "Load": "bind the tensor itself; each kernel chooses how it is moved",
    "NumericLike": "gemmery.typing.NumericLike",
    "Operand": "pass the tensor itself",
    "Operator": "gemmery.Kernel",
    "OperatorMetadata": "gemmery.KernelMetadata",
    "Store": "bind the tensor itself; each kernel chooses how it is moved",
    "TargetSm": 'targets are texts, "sm_90a", or numbers, 90',
    "TensorLike": "gemmery.typing.TensorLike",
    "Transport": "each kernel chooses how tensors are moved",
    "available_providers": "gemmery.providers.available_providers",
    "get_operators": "gemmery.get_kernels",
    "mma": "kernel.metadata.design.instruction tells the instruction",
    "register_provider": "gemmery.providers.register_provider",
    "workspace": "any tensor of kernel.get_workspace_size(args) bytes, or none",
}
