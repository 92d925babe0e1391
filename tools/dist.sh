#!/bin/bash
# Makes what a release consists of. The same commit and tools make the same bytes, wherever and whenever.
# usage: dist.sh VERSION DIRECTORY
# IMAGE is where the image will be, such as registry.example.org/htcd; without it the manifests leave it open, like deploy/base.
# URL is where DIRECTORY will be; krew's manifest names it. KUBECTL renders. PLATFORMS can be empty, to make no programs.
set -euo pipefail
version=$1
kubectl=$(command -v "${KUBECTL:-kubectl}") || {
	echo "there is no ${KUBECTL:-kubectl}: KUBECTL names one" >&2
	exit 1
}
cd "$(dirname "$0")/.."
mkdir -p "$2"
out=$(realpath "$2")
if [ -n "$(ls -A "$out")" ]; then
	echo "$out is not empty" >&2
	exit 1
fi
url=${URL:-https://example.org/htcd/$version}
platforms=${PLATFORMS-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
mkdir -p bin
work=$(mktemp -d bin/dist.XXXXXX) # in the clone: kustomize takes relative paths only
trap 'rm -rf "$work"' EXIT
umask 022

# archive FILE DIRECTORY NAME...: a .tar.gz without anything of this machine or moment
archive() {
	local file=$1 dir=$2
	shift 2
	tar -C "$dir" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=u+rw,go+r-w --mtime="@$SOURCE_DATE_EPOCH" -c "$@" | gzip -9n >"$file"
}

# render DIRECTORY: what kustomize makes of it, with the release's image
render() {
	{
		printf 'resources: [../../%s]\n' "$1"
		[ -z "${IMAGE-}" ] || printf 'images: [{name: htcd, newName: %s, newTag: %s}]\n' "$IMAGE" "$version"
	} >"$work/kustomization.yaml"
	"$kubectl" kustomize "$work"
}

# contents PROGRAM: the modules in it, as CycloneDX
contents() {
	go version -m "$1" | awk -v name="$(basename "$1")" -v version="$version" '
		NR == 1 { go = $NF; sub(/^go/, "", go)
			printf "{\n  \"bomFormat\": \"CycloneDX\",\n  \"specVersion\": \"1.6\",\n  \"version\": 1,\n"
			printf "  \"metadata\": {\"component\": {\"type\": \"application\", \"name\": \"%s\", \"version\": \"%s\"}},\n  \"components\": [\n", name, version
			printf "    {\"type\": \"library\", \"name\": \"stdlib\", \"version\": \"%s\", \"purl\": \"pkg:golang/stdlib@%s\"}", go, go }
		$1 == "dep" { printf ",\n    {\"type\": \"library\", \"name\": \"%s\", \"version\": \"%s\", \"purl\": \"pkg:golang/%s@%s\"}", $2, $3, $2, $3 }
		END { print "\n  ]\n}" }'
}

# build OS/ARCH PROGRAM FILE
build() {
	GOOS=${1%/*} GOARCH=${1#*/} CGO_ENABLED=0 GOFLAGS='' go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X main.version=$version" -o "$3" "./cmd/$2"
	contents "$3" >"$out/$(basename "$3").cdx.json"
}

render deploy/base >"$out/install.yaml"
for overlay in generic cern; do
	render "deploy/overlays/$overlay" >"$out/install-$overlay.yaml"
done
render deploy/base/crd >"$out/crds.yaml"

cp -rL deploy/helm/htcd "$work/htcd"
find "$work/htcd" \( -name kustomization.yaml -o -name references.yaml -o -name alerts_test.yaml \) -delete
sed -i "s/^version: .*/version: ${version#v}/; s/^appVersion: .*/appVersion: $version/" "$work/htcd/Chart.yaml"
archive "$out/htcd-${version#v}.tgz" "$work" htcd

cp LICENSE "$work/"
krew="apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: htcjob
spec:
  version: $version
  homepage: $url
  shortDescription: Run HTCondor jobs and read their output
  description: Submits HTCJobs and HTCWorkflows of htcd, shows their progress, and reads what their jobs have written.
  platforms:"
for platform in $platforms; do
	name=${platform/\//-}
	mkdir "$work/$name"
	build "$platform" kubectl-htcjob "$work/$name/kubectl-htcjob-$name"
	mv "$work/$name/kubectl-htcjob-$name" "$work/$name/kubectl-htcjob"
	cp LICENSE "$work/$name/"
	file=kubectl-htcjob-$name.tar.gz
	archive "$out/$file" "$work/$name" kubectl-htcjob LICENSE
	krew+="
  - selector: {matchLabels: {os: ${platform%/*}, arch: ${platform#*/}}}
    uri: $url/$file
    sha256: $(sha256sum "$out/$file" | cut -d' ' -f1)
    bin: kubectl-htcjob"
	case $platform in
	linux/*) build "$platform" htcd "$out/htcd-$name" ;;
	esac
done
[ -z "$platforms" ] || printf '%s\n' "$krew" >"$out/krew-htcjob.yaml"

(cd "$out" && sha256sum -- * >SHA256SUMS)
