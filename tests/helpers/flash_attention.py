"""The part of flash-attention's CMakeLists.txt around its lists, which is an excerpt of a case."""

from cases import cases

CASE = cases("flash_attention/native-arch")["lists.cmake"]
LISTS = "cuda_archs_loose_intersection(FA2_ARCHS"
_CONFIGURES = """cmake_minimum_required(VERSION 3.26)
project(vllm_flash_attn LANGUAGES CXX CUDA)
include(${CMAKE_CURRENT_LIST_DIR}/cmake/utils.cmake)
find_package(Torch REQUIRED)
clear_cuda_arches(CUDA_ARCH_FLAGS)
extract_unique_cuda_archs_ascending(CUDA_ARCHS "${CUDA_ARCH_FLAGS}")
%s
set_gencode_flags_for_srcs(SRCS "csrc/flash_attn/src/flash_fwd_hdim128.cu" CUDA_ARCHS "${FA2_ARCHS}")
"""
_SUPPORTED = 'cuda_archs_loose_intersection(CUDA_ARCHS "${CUDA_SUPPORTED_ARCHS}" "${CUDA_ARCHS}")\n'


def configures(lists: str) -> str:
    """Return the whole file around the excerpt."""
    before, fa2, after = lists.partition(LISTS)
    return _CONFIGURES % f"{before}{_SUPPORTED}{fa2}{after}"
