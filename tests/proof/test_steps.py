"""nvcc step by step: the machine code of each target is nvcc's own, and equal texts are compiled once."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from fp4patch.core.process import Runner
from fp4patch.proof.steps import Nvcc
from fp4patch.proof.toolchain import Toolchain
from fp4patch.sass.elf import Elf
from fp4patch.sass.text import loaded_sections

KERNEL = """\
#include <cuda_fp4.h>
__global__ void probe(float2* in, __nv_fp4x2_storage_t* out) {
  out[threadIdx.x] = __nv_cvt_float2_to_fp4x2(in[threadIdx.x], __NV_E2M1, cudaRoundNearest);
  %s
}
"""
ONLY_ON_GB10 = "#if __CUDA_ARCH__ == 1210\nout[0] = 7;\n#endif"


class Counting(Runner):
    """Counts the runs of the device compiler, and of the two for the host."""

    compiled = 0
    of_host = 0

    def run(self, command: Sequence[str | Path], *, scratch: Path) -> tuple[int, str, str]:
        self.compiled += '/cicc" ' in str(command[-1])
        self.of_host += "\ncudafe++ " in str(command[-1]) or '.cudafe1.cpp" -o' in str(command[-1])
        return super().run(command, scratch=scratch)


@pytest.mark.parametrize(("line", "compiled"), [("", 2), (ONLY_ON_GB10, 4)])
def test_a_text_is_compiled_once_and_each_target_has_the_code_that_nvcc_makes(
    line: str, compiled: int, toolchain: Toolchain, tmp_path: Path
) -> None:
    runner = Counting(toolchain.environ)
    nvcc = Nvcc(runner)
    source = tmp_path / "probe.cu"
    source.write_text(KERNEL % line)
    for arch in ("sm_120a", "sm_121a", "sm_121f", "sm_120", "sm_121"):
        scratch = tmp_path / arch
        scratch.mkdir()
        flags = ["-cubin", f"-arch={arch}", "-lineinfo", "-Xptxas", "-v"]
        command: list[str | Path] = [toolchain.nvcc, *toolchain.flags, *flags, source, "-o"]
        status, log = nvcc.run([*command, scratch / "ours", "-keep", "-keep-dir", scratch], scratch)
        assert status == 0
        assert runner.run([*command, scratch / "nvccs"], scratch=scratch)[0] == 0
        ours, nvccs = ((scratch / name).read_bytes() for name in ("ours", "nvccs"))
        assert loaded_sections(ours) == loaded_sections(nvccs)
        assert Elf(ours).header.flags == Elf(nvccs).header.flags
        assert f"for '{arch}'" in log
    assert runner.compiled == compiled


@pytest.mark.parametrize(("line", "compiled"), [("", 2), ("if (__CUDA_ARCH_LIST__ == 1210) return 7;", 4)])
def test_the_hosts_text_is_compiled_once(line: str, compiled: int, toolchain: Toolchain, tmp_path: Path) -> None:
    runner = Counting(toolchain.environ)
    nvcc = Nvcc(runner)
    source = tmp_path / "host.cu"
    source.write_text(f"int host(int x) {{ {line} return 2 * x; }}\n" + KERNEL % "")
    for arch in ("90", "121a"):
        scratch = tmp_path / arch
        scratch.mkdir()
        flags = ["-c", f"-gencode=arch=compute_{arch},code=sm_{arch}", "-Xcompiler", "-g,-save-temps=obj"]
        command: list[str | Path] = [toolchain.nvcc, *toolchain.flags, *flags, source, "-o"]
        assert nvcc.run([*command, scratch / "ours", "-keep", "-keep-dir", scratch], scratch)[0] == 0
        assert runner.run([*command, scratch / "nvccs"], scratch=scratch)[0] == 0
        texts = ((scratch / name).read_text().partition("_Z4hosti:")[2] for name in ("ours.s", "nvccs.s"))
        ours, nvccs = (text.partition(".cfi_endproc")[0] for text in texts)
        assert ours
        assert ours == nvccs
    assert runner.of_host == compiled


def test_an_error_is_the_compilers(toolchain: Toolchain, tmp_path: Path) -> None:
    nvcc = Nvcc(Runner(toolchain.environ))
    source = tmp_path / "probe.cu"
    source.write_text(KERNEL % "nothing;")
    undefined = 'identifier "nothing" is undefined'
    for arch, error in (("sm_120a", undefined), ("sm_121a", undefined), ("sm_999", "sm_999")):
        scratch = tmp_path / arch
        scratch.mkdir()
        flags = [*toolchain.flags, "-cubin", f"-arch={arch}", "-keep", "-keep-dir", str(scratch)]
        status, log = nvcc.run([toolchain.nvcc, *flags, source, "-o", scratch / "probe.out"], scratch)
        assert status != 0
        assert error in log
        assert not (scratch / "probe.out").exists()
