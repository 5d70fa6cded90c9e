# The stages' names, contexts and files of dockerfiles/Dockerfile, on a base of 2 MB: for tests of what surrounds a build.
# The proof comes from a build context `made`; `sources` is another each time it is made, `kernels` never ends, and `wheel`
# fails.
ARG BASE_IMAGE=scratch
FROM scratch AS vllm-tree
FROM scratch AS cutlass-tree

FROM ${BASE_IMAGE} AS toolkit
COPY fp4patch-*.whl constraints.txt torch.txt /context/

FROM toolkit AS sources
ARG VARIANT
ARG VLLM_VERSION
ARG CUTLASS_VERSION
RUN echo "$VARIANT with $VLLM_VERSION and $CUTLASS_VERSION" >/sources; cat /proc/sys/kernel/random/uuid >>/sources
COPY --from=cutlass-tree / /given/cutlass/

FROM sources AS proof
COPY --from=made src /src/
COPY --from=made proof /opt/fp4patch/proof/
COPY pins.json /opt/fp4patch/proof/

FROM proof AS kernels
ARG FOREVER=86399
RUN echo this never ends; sleep $FOREVER

FROM proof AS wheel
RUN echo this fails; exit 7

FROM scratch AS proof-export
COPY --from=proof /opt/fp4patch/proof /

FROM proof AS runtime
COPY --from=proof /src /src
