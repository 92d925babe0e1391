# htcd with HTCondor's client tools and kinit, and nothing else: no shell, no
# package manager, no accounts. Any uid will do. Build with
#   docker build --build-arg VERSION=v0.1.0 -t htcd:v0.1.0 .

FROM golang:1.26.8-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY internal internal
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=$VERSION" -o /htcd ./cmd/htcd

FROM debian:13-slim AS tools
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    condor krb5-user ca-certificates
COPY deploy/image/collect.sh /
RUN mkdir /tree && sh /collect.sh /tree \
    condor_submit condor_q condor_history condor_rm condor_transfer_data \
    condor_status condor_config_val condor_ping kinit klist \
 && cp --parents /etc/ssl/certs/ca-certificates.crt /tree

FROM scratch
COPY --from=tools /tree /
COPY --from=build /htcd /usr/bin/htcd
ENV PATH=/usr/bin
USER 10001:10001
EXPOSE 8080 8088
ENTRYPOINT ["/usr/bin/htcd"]
CMD ["run"]
