#!/usr/bin/env bash
# Installs node-authorizer in a job of GitHub Actions, and puts it on the PATH of later steps.
#
# VERSION is the tag of a release, whose archive is downloaded and compared with its checksum. If it is
# no such tag (a branch, a commit, empty), the program is built from the action's own source with Go.
set -euo pipefail

releases=${NODE_AUTHORIZER_RELEASES:-https://github.com/node-authorizer/node-authorizer/releases/download}
dir=$RUNNER_TEMP/node-authorizer
program=node-authorizer
[[ $RUNNER_OS != Windows ]] || program+=.exe

fail() {
  echo "::error::node-authorizer: $1" >&2
  exit 1
}

# platform prints OS_ARCH as in the names of archives.
platform() {
  local system arch
  case $RUNNER_OS in
    Linux) system=linux ;;
    macOS) system=darwin ;;
    Windows) system=windows ;;
    *) fail "no release for $RUNNER_OS: remove the input version, to build from source" ;;
  esac
  case $RUNNER_ARCH in
    X64) arch=amd64 ;;
    ARM64) arch=arm64 ;;
    *) fail "no release for $RUNNER_ARCH: remove the input version, to build from source" ;;
  esac
  echo "${system}_$arch"
}

download() {
  curl --fail --location --silent --show-error --retry 3 --proto-redir =https --output "$1" "$releases/$VERSION/$1" ||
    fail "$1 of release $VERSION cannot be downloaded"
}

# verify compares a file with its line in checksums.txt.
verify() {
  local sums=(sha256sum)
  command -v sha256sum >/dev/null || sums=(shasum -a 256)
  awk -v name="$1" '$2 == name' checksums.txt >checksum
  [[ $(wc -l <checksum) -eq 1 ]] || fail "checksums.txt of release $VERSION does not have one line about $1"
  "${sums[@]}" --check --status checksum || fail "the checksum of $1 is not that of release $VERSION"
}

install_release() {
  local name work
  name=node-authorizer_${VERSION}_$(platform)
  case $RUNNER_OS in
    Windows) name+=.zip ;;
    *) name+=.tar.gz ;;
  esac
  work=$(mktemp -d "$RUNNER_TEMP/download.XXXXXX")
  cd "$work"
  download checksums.txt
  download "$name"
  verify "$name"
  case $name in
    *.zip) unzip -q "$name" "$program" ;;
    *) tar -xzf "$name" "$program" ;;
  esac
  mkdir -p "$dir"
  mv "$program" "$dir/"
}

build() {
  command -v go >/dev/null || fail "building from source needs Go: add actions/setup-go, or set the input version to a release"
  go -C "$GITHUB_ACTION_PATH" build -trimpath -tags grpcnotrace -ldflags '-s -w' -o "$dir/$program" ./cmd/node-authorizer
}

if [[ $VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  install_release
else
  build
fi
"$dir/$program" version
echo "$dir" >>"$GITHUB_PATH"
