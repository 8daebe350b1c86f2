# The image of deploy/kuberay.yaml: Ray, Headrace and your code. For GPUs build with --build-arg VARIANT=-gpu.
ARG VARIANT=
FROM rayproject/ray:2.60.0-py311${VARIANT}
RUN pip install --no-cache-dir 'headrace[kafka,memory,ray]'
# Your application, for example:
# COPY --chown=ray:users shop ./shop
