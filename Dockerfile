# htcd with HTCondor's client tools and kinit, and nothing else: no shell, no
# package manager, no accounts. Any uid works. `make image` builds it; so does
#   docker build --build-arg VERSION=v0.1.0 -t htcd:v0.1.0 .

# The base images. --build-arg DEBIAN=NAME@sha256:... pins one exactly.
ARG GOLANG=golang:1.26.8-trixie
ARG DEBIAN=debian:13.1-slim

FROM $GOLANG AS build
WORKDIR /src
# The module proxy, if not Go's default.
ARG GOPROXY
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=$VERSION" -o /htcd ./cmd/htcd

FROM $DEBIAN AS tools
# The versions htcd is tested with, plus Debian's fixes; a full version pins one exactly.
ARG CONDOR=23.9.*
ARG KRB5=1.21.*
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    "condor=$CONDOR" "krb5-user=$KRB5" ca-certificates
COPY deploy/image/collect.sh /
RUN mkdir /tree && sh /collect.sh /tree \
    condor_submit condor_q condor_history condor_rm condor_hold condor_release condor_qedit condor_tail \
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
