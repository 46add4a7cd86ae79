# The agent and the simulated VPP: static programs in otherwise empty images.
#   docker build -f deploy/docker/agent.Dockerfile --target agent -t longline-agent .
ARG GO_IMAGE=golang:1.26-bookworm

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY agent/go.mod agent/go.sum ./
RUN go mod download
COPY agent .
COPY pyproject.toml /
RUN version=$(sed -n 's/^version = "\(.*\)"$/\1/p' /pyproject.toml) \
    && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" \
        -o /out/ ./cmd/longline-agent ./cmd/vppsim
# Named volumes start as copies of these folders, which belong to the programs' user.
RUN install -d -o 10001 -g 10001 -m 0700 /folders/state && install -d -o 10001 -g 10001 -m 0755 /folders/vpp

FROM scratch AS agent
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/longline-agent /usr/bin/longline-agent
COPY --from=build --chown=10001:10001 /folders/state /var/lib/longline
COPY --from=build --chown=10001:10001 /folders/vpp /run/vpp
# As in the systemd unit: the agent needs no more threads, and a limit of processes must have room for all of them.
ENV GOMAXPROCS=4
USER 10001:10001
EXPOSE 9443 9470
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/usr/bin/longline-agent", "health"]
ENTRYPOINT ["/usr/bin/longline-agent"]

FROM scratch AS vppsim
COPY --from=build /out/vppsim /usr/bin/vppsim
COPY --from=build --chown=10001:10001 /folders/vpp /run/vpp
COPY --from=build --chown=10001:10001 /folders/vpp /run/underlay
USER 10001:10001
ENTRYPOINT ["/usr/bin/vppsim"]
