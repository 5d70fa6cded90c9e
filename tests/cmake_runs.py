"""Runs a vLLM tree's own CMakeLists.txt by ``cmake -P``, and says for which architectures each source is compiled.

The whole file is evaluated, with the tree's own functions, up to its end. Replaced are only the commands that need a
compiler, a network or a build folder: they do nothing, or record. PyTorch's part, from TORCH_CUDA_ARCH_LIST to the
``-gencode`` flags in CMAKE_CUDA_FLAGS, is done here: ``12.1a`` is compute_121a and sm_121a. PyTorch releases whose
select_compute_arch.cmake knows no ``f`` stop at ``12.1f`` before any of this.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

STUBS = r"""
cmake_policy(VERSION 3.26)
# Commands that need a project, a compiler or the network: nothing to see here.
foreach(_name project enable_language add_custom_target add_dependencies add_custom_command add_library add_executable
        target_compile_definitions target_compile_options target_include_directories target_link_libraries
        target_link_options target_sources set_target_properties set_source_files_properties install add_subdirectory
        Python_add_library python_add_library find_library find_program find_path find_file add_compile_definitions
        add_compile_options include_directories link_directories enable_testing add_definitions link_libraries
        FetchContent_Declare get_target_property try_compile check_cxx_compiler_flag
        check_language get_source_file_property)
  cmake_language(EVAL CODE "macro(${_name})\nendmacro()")
endforeach()
macro(FetchContent_MakeAvailable _stub_project)
  string(TOLOWER "${_stub_project}" _stub_lower)
  set(${_stub_lower}_SOURCE_DIR "/fetched/${_stub_lower}")
  set(${_stub_lower}_BINARY_DIR "/built/${_stub_lower}")
endmacro()
macro(FetchContent_Populate _stub_project)
  FetchContent_MakeAvailable(${_stub_project})
endmacro()
macro(FetchContent_GetProperties _stub_project)
  FetchContent_MakeAvailable(${_stub_project})
  set(${_stub_lower}_POPULATED TRUE)
endmacro()
# Of other projects' files nothing is there; nothing is written but the record. A pattern for kernels that the build
# generates names one of each.
macro(file _stub_what)
  if("${_stub_what}" STREQUAL "READ" AND NOT EXISTS "${ARGV1}")
    set(${ARGV2} "")
  elseif("${_stub_what}" STREQUAL "GLOB" AND "${ARGV2}" MATCHES "\\*[a-z0-9_]*\\.cu$")
    string(REPLACE "*" "generated" ${ARGV1} "${ARGV2}")
  elseif("${_stub_what}" MATCHES "^GLOB" AND "${ARGV2}" STREQUAL "CONFIGURE_DEPENDS")
    set(${ARGV1} "")
  elseif("${_stub_what}" MATCHES "^(READ|GLOB|MD5|SHA256|STRINGS|REAL_PATH)$")
    _file(${ARGV})
  endif()
endmacro()
# The tree's own files are read; CMake's modules are not.
macro(include _stub_file)
  if("${_stub_file}" MATCHES "\\.cmake$")
    _include("${_stub_file}")
  endif()
endmacro()
# What find_package(Torch) leaves behind.
macro(find_package)
  set(CUDA_FOUND TRUE)
  set(Torch_VERSION 2.0)
  set(CUDA_VERSION "${RUN_CUDA}")
  set(CMAKE_CUDA_COMPILER_VERSION "${RUN_CUDA}")
  set(CMAKE_CUDA_FLAGS "${RUN_FLAGS}")
  set(Python_FOUND TRUE)
  set(Python_EXECUTABLE python3)
  set(Python_VERSION_MAJOR 3)
  set(Python_VERSION_MINOR 12)
endmacro()
# Every process succeeds and says nothing: Python helpers and kernel generators.
function(execute_process)
  cmake_parse_arguments(_p "" "OUTPUT_VARIABLE;RESULT_VARIABLE;ERROR_VARIABLE" "COMMAND" ${ARGN})
  foreach(_v ${_p_OUTPUT_VARIABLE} ${_p_ERROR_VARIABLE})
    set(${_v} "" PARENT_SCOPE)
  endforeach()
  if(_p_RESULT_VARIABLE)
    set(${_p_RESULT_VARIABLE} 0 PARENT_SCOPE)
  endif()
endfunction()
# The record: per source, each -gencode flag that the tree's own macros set.
function(set_property)
  if("${ARGV0}" STREQUAL "SOURCE")
    foreach(_argument ${ARGN})
      if("${_argument}" MATCHES "\\.cu$")
        list(APPEND _sources "${_argument}")
      endif()
    endforeach()
    if("${ARGN}" MATCHES "arch=(compute_[0-9]+[af]?),code=([a-z]+_[0-9]+[af]?)")
      foreach(_source ${_sources})
        _file(APPEND "${RUN_RECORD}" "source ${_source} ${CMAKE_MATCH_1} ${CMAKE_MATCH_2}\n")
      endforeach()
    endif()
  endif()
endfunction()
function(message _mode)
  if("${_mode}" STREQUAL "FATAL_ERROR")
    _message(FATAL_ERROR ${ARGN})
  elseif("${ARGN}" MATCHES "^CUDA supported target architectures: (.*)$")
    _file(APPEND "${RUN_RECORD}" "global ${CMAKE_MATCH_1}\n")
  endif()
endfunction()
"""


@dataclass(frozen=True)
class Configured:
    """What one configuration of the tree comes to. Architectures as in TORCH_CUDA_ARCH_LIST, sorted."""

    everywhere: tuple[str, ...]
    """The global CUDA_ARCHS: what sources without a list of their own are compiled for."""
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """For each .cu file the GPU code in it (``sm_…``); PTX is left out."""
    error: str = ""
    """The tree's own fatal error, if it stopped."""

    def of(self, pattern: str) -> tuple[str, ...]:
        """The architectures of the sources whose path matches; all of those must agree."""
        found = {archs for source, archs in self.sources.items() if re.search(pattern, source)}
        assert len(found) <= 1, f"{pattern}: {found}"
        return found.pop() if found else ()


def cmake() -> str | None:
    """The cmake on this machine: the package index's, or the system's; None if there is none."""
    try:
        import cmake as wheel
    except ImportError:
        return shutil.which("cmake")
    return str(Path(wheel.CMAKE_BIN_DIR) / "cmake")


def gencode(arch_list: str) -> str:
    """PyTorch's flags for TORCH_CUDA_ARCH_LIST."""
    flags = []
    for arch in arch_list.split(";"):
        number = arch.replace(".", "")
        flags.append(f"-gencode arch=compute_{number},code=sm_{number}")
    return " ".join(flags)


def configure(tree: Path, cuda: str, arch_list: str, scratch: Path) -> Configured:
    """Evaluate the tree's CMakeLists.txt for a CUDA release and a TORCH_CUDA_ARCH_LIST."""
    program = cmake()
    assert program, "no cmake: pip install cmake"
    name = f"{cuda}-{arch_list}".replace(";", "_")
    record, script = scratch / f"{name}.record", scratch / f"{name}.cmake"
    record.unlink(missing_ok=True)
    record.touch()
    cutlass = scratch / "cutlass-include"
    (cutlass / "cutlass").mkdir(parents=True, exist_ok=True)
    (cutlass / "cutlass" / "cutlass.h").touch()
    settings = {
        "RUN_RECORD": record,
        "RUN_CUDA": cuda,
        "RUN_FLAGS": gencode(arch_list),
        "VLLM_TARGET_DEVICE": "cuda",
        "VLLM_PYTHON_EXECUTABLE": "/bin/sh",
        "CMAKE_SOURCE_DIR": tree,
        "CMAKE_CURRENT_SOURCE_DIR": tree,
        "CMAKE_CURRENT_BINARY_DIR": scratch,
        "CMAKE_BINARY_DIR": scratch,
        "CUTLASS_INCLUDE_DIR": cutlass,
        "NVCC_EXECUTABLE": "nvcc",
    }
    lines = [f'set({key} "{value}")' for key, value in settings.items()]
    script.write_text("\n".join([STUBS, *lines, f'_include("{tree}/CMakeLists.txt")', ""]))
    run = subprocess.run([program, "-P", str(script)], capture_output=True, text=True, check=False, cwd=tree)
    return _read(record.read_text(), run.stderr if run.returncode else "")


def _read(record: str, error: str) -> Configured:
    everywhere: tuple[str, ...] = ()
    sources: dict[str, set[str]] = {}
    for line in record.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "global":
            everywhere = tuple(sorted(rest.split(";")))
        elif kind == "source":
            source, _, code = rest.split()
            if code.startswith("sm_"):
                sources.setdefault(source, set()).add(_torch(code))
    return Configured(everywhere, {source: tuple(sorted(archs)) for source, archs in sources.items()}, error)


def _torch(code: str) -> str:
    return re.sub(r"^sm_(\d+)(\d[af]?)$", r"\1.\2", code)
