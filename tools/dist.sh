#!/bin/bash
# Makes what a release consists of. The same commit and tools make the same bytes, wherever and whenever.
# usage: dist.sh VERSION DIRECTORY
# IMAGE is where the image will be, such as registry.example.org/htcd; without it the manifests leave that open, like deploy/base.
# KEY is a private key of cosign's, whose password is in COSIGN_PASSWORD; without it nothing is signed.
# URL is where DIRECTORY will be; krew's manifest names it. KUBECTL renders. PLATFORMS can be empty, to make no programs.
# LAB builds the images, unless ARCHIVES lists some, in the format of docker save.
set -euo pipefail
version=$1
step() { printf '[%4ds] %s\n' "$SECONDS" "$*" >&2; }
key=()
if [ -n "${KEY-}" ]; then
	[ -n "${IMAGE-}" ] || { echo "KEY without IMAGE: what is signed says where the image is" >&2 && exit 1; }
	key=(-key "$(realpath -e "$KEY")")
fi
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
step "build tools/release"
GOFLAGS='' CGO_ENABLED=0 go build -C tools/release -trimpath -buildvcs=false -o "$PWD/$work/release" .
if [ -n "${KEY-}" ]; then # before what takes long
	: >"$work/tried"
	"$work/release" sign "${key[@]}" "$work" tried
fi

# pack DIRECTORY NAME...: a tar without anything of this machine or moment
pack() { tar -C "$1" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mode=a+rX,u+w,go-w --mtime="@$SOURCE_DATE_EPOCH" -c "${@:2}"; }

# render DIRECTORY: what kustomize makes of it, with the release's image
render() {
	{
		printf 'resources: [../../%s]\n' "$1"
		printf 'images: [{name: htcd, newName: "%s", digest: "%s"}]\n' "${IMAGE:-htcd}" "$digest"
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

if [ -z "${ARCHIVES-}" ]; then
	for architecture in amd64 arm64; do
		step "build the image for $architecture"
		file=$work/htcd-image-linux-$architecture
		"$LAB" image --clone "$PWD" --version "$version" --revision "$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
			--created "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" --architecture "$architecture" --fresh --archive "$file" >&2
		mv "$file.cdx.json" "$out/"
		ARCHIVES="${ARCHIVES-} $file"
	done
fi
step "make one archive of the images"
# shellcheck disable=SC2086 # a list
digest=$("$work/release" layout -version "$version" -created "$SOURCE_DATE_EPOCH" "${key[@]}" ${key:+-image "$IMAGE"} "$work/layout" $ARCHIVES)
pack "$work/layout" oci-layout index.json blobs >"$out/htcd-image.tar"

step "render manifests and chart with ${IMAGE:-htcd}@$digest"
render deploy/base >"$out/install.yaml"
for overlay in generic cern; do
	render "deploy/overlays/$overlay" >"$out/install-$overlay.yaml"
done
render deploy/base/crd >"$out/crds.yaml"
cp deploy/ceilings/ceilings.yaml "$out/"

cp -rL deploy/helm/htcd "$work/htcd"
find "$work/htcd" \( -name kustomization.yaml -o -name references.yaml -o -name alerts_test.yaml \) -delete
sed -i "s/^version: .*/version: ${version#v}/; s/^appVersion: .*/appVersion: $version/" "$work/htcd/Chart.yaml"
sed -i "/^image:/,/^[^ ]*:\$/{s|^  repository: .*|  repository: \"${IMAGE-}\"|; s|^  digest: .*|  digest: \"$digest\"|}" "$work/htcd/values.yaml"
pack "$work" htcd | gzip -9n >"$out/htcd-${version#v}.tgz"

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
	step "compile for $platform"
	build "$platform" kubectl-htcjob "$work/$name/kubectl-htcjob-$name"
	mv "$work/$name/kubectl-htcjob-$name" "$work/$name/kubectl-htcjob"
	cp LICENSE "$work/$name/"
	file=kubectl-htcjob-$name.tar.gz
	pack "$work/$name" kubectl-htcjob LICENSE | gzip -9n >"$out/$file"
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
if [ -n "${KEY-}" ]; then
	"$work/release" sign "${key[@]}" "$out" SHA256SUMS
	step "the release is in $out, signed with $KEY"
else
	step "the release is in $out, UNSIGNED: KEY names a private key, such as cosign generate-key-pair makes"
fi
