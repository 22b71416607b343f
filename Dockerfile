# embark with torch, on the CPU or on CUDA:
#
#     docker build --tag embark .
#     docker build --tag embark:cuda --build-arg DEVICE=cuda .
#     docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" embark run
#     docker run --rm --user "$(id -u):$(id -g)" --volume "$PWD:/data" --gpus all embark:cuda \
#         run -m google/siglip2-base-patch16-224 -b 'MIEB(lite)'
#
# Vectors, downloads and results stay in the folder that is mounted at /data.
ARG PYTHON=3.12
ARG DEVICE=cpu

FROM python:${PYTHON}-slim AS wheel
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON}-slim AS cpu
# An index with CPU builds of torch makes the image smaller: pip's usual build brings CUDA's libraries on x86-64.
ARG TORCH_INDEX=
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[torch,audio,video,plots]"

FROM python:${PYTHON}-slim AS cuda
# torch brings CUDA's libraries, torchvision the JPEG decoder of --pixels cuda; the driver is the host's.
RUN pip install --no-cache-dir torch torchvision
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[torch,audio,video,plots]"
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,video,utility

FROM ${DEVICE}
WORKDIR /data
# Any --user may write here, also where nothing is mounted.
RUN chmod 1777 /data
ENV EMBARK_HOME=/data/.embark HF_HOME=/data/.huggingface XDG_CACHE_HOME=/data/.cache MPLCONFIGDIR=/tmp/matplotlib
USER 1000
ENTRYPOINT ["embark"]
CMD ["run"]
