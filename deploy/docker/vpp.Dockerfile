# A VPP for the demonstration, from packages that you put into vpp-packages/: FD.io's libvppinfra, vpp and
# vpp-plugin-core for Debian 12. It needs no hugepages, no network card and no capability.
#   docker build -f deploy/docker/vpp.Dockerfile -t longline-vpp .
ARG DEBIAN_IMAGE=debian:12-slim

FROM ${DEBIAN_IMAGE}
COPY vpp-packages /tmp/vpp-packages
# VPP's packages would change the host's hugepages.
RUN export DEBIAN_FRONTEND=noninteractive VPP_INSTALL_SKIP_SYSCTL=1 \
    && apt-get update -qq \
    && apt-get install --yes -qq --no-install-recommends /tmp/vpp-packages/*.deb >/dev/null \
    && rm -rf /var/lib/apt/lists/*
# Named volumes start as copies of these folders.
RUN install -d -o 10001 -g 10001 -m 0755 /run/vpp /run/wires
USER 10001:10001
ENTRYPOINT ["vpp"]
CMD ["-c", "/etc/vpp/startup.conf"]
