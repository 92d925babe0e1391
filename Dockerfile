# htcd with HTCondor's client tools and kinit, and nothing else: no shell, no
# package manager, no accounts. Any uid works. `make image` builds it; so does
#   docker build --build-arg VERSION=v0.1.0 -t htcd:v0.1.0 .
# With --platform linux/arm64 or linux/amd64 it is for that architecture, made on
# any: nothing that goes into it runs meanwhile.

# The base images. --build-arg DEBIAN=NAME@sha256:... pins one exactly.
ARG GOLANG=golang:1.26.8-trixie
ARG DEBIAN=debian:13.1-slim

FROM --platform=$BUILDPLATFORM $GOLANG AS build
WORKDIR /src
# The module proxy, if not Go's default.
ARG GOPROXY
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY internal internal
ARG VERSION=dev
ARG TARGETARCH
# As tools/dist.sh builds it.
RUN CGO_ENABLED=0 GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags="-s -w -buildid= -X main.version=$VERSION" -o /htcd ./cmd/htcd

FROM --platform=$BUILDPLATFORM $DEBIAN AS tools
RUN apt-get update && apt-get install -y --no-install-recommends binutils
# The versions htcd is tested with, plus Debian's fixes; a full version pins one exactly.
ARG CONDOR=23.9.*
ARG KRB5=1.21.*
ARG TARGETARCH
COPY deploy/image/*.sh /
RUN sh /unpack.sh "$TARGETARCH" /unpacked "condor=$CONDOR" "krb5-user=$KRB5" ca-certificates
RUN mkdir /tree && sh /collect.sh /unpacked /tree \
    condor_submit condor_q condor_history condor_rm condor_hold condor_release condor_qedit condor_tail condor_ssh_to_job \
    condor_transfer_data condor_config_val condor_ping condor_status kinit

FROM scratch
COPY --from=tools /tree /
COPY --from=build /htcd /usr/bin/htcd
ENV PATH=/usr/bin
USER 10001:10001
EXPOSE 8080 8088 8443
ENTRYPOINT ["/usr/bin/htcd"]
CMD ["run"]
ARG VERSION=dev
ARG REVISION=unknown
ARG CREATED=unknown
LABEL org.opencontainers.image.title="htcd" \
      org.opencontainers.image.description="HTCondor jobs as Kubernetes resources" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
