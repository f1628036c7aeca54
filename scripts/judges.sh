#!/usr/bin/env bash
# judges.sh: brings the judges of Verbena's interop tests onto this machine.
#
# A judge is a program or kernel that we did not write and that says whether we speak RDMA correctly:
# Linux' rdma_rxe in a QEMU guest, Debian's perftest and rdma-core tools, tshark, tcpdump, and qemu-user, which carries
# out the arm64 build of the simulator, and chromium, which opens the page of verbena monitor. iperf3 comes along for "make bench".
# The tools are installed as Debian packages. The guest's kernel is never installed: its package is
# downloaded and unpacked under the cache directory, and the host's /boot and /lib/modules stay alone.
#
# Quick when everything is there (no network is touched). On a machine where it cannot work (not root,
# not Debian) it says why, writes nothing and exits 0: the tests then skip by the judge's name.
#
# Environment:
#   VERBENA_CACHE    where the guest kernel and initramfs are kept (default $HOME/.cache/verbena)
#   VERBENA_JUDGES   "none": install nothing; "require": a failure to install is an error
set -euo pipefail

say() { printf 'judges: %s\n' "$*"; }
skip() { say "nothing installed: $*"; exit 0; }

[ "${VERBENA_JUDGES:-}" != none ] || skip "VERBENA_JUDGES=none"
[ "$(uname -s)" = Linux ] || skip "this is $(uname -s), the judges are Debian packages"
[ -r /etc/debian_version ] && command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
  skip "this is not Debian, the judges are Debian packages"
# shellcheck disable=SC1091
[ "$(. /etc/os-release && echo "$ID")" = debian ] || skip "this is not Debian, the judges are Debian packages"
[ "$(dpkg --print-architecture)" = amd64 ] || skip "the guest is x86-64 and this is $(dpkg --print-architecture)"
[ "$(id -u)" = 0 ] || skip "not root (packages and network namespaces need it); try: sudo $0"

cache=${VERBENA_CACHE:-${HOME:-/root}/.cache/verbena}
kernels=$cache/kernel
backports=$cache/kernel-backports # of the suite of that name: its rdma_rxe has FLUSH and ATOMIC WRITE

packages=(
  qemu-system-x86 qemu-system-data ipxe-qemu seabios # the guest machine
  kmod iproute2 busybox-static libgcc-s1             # what its initramfs and network are made of
  perftest ibverbs-utils rdmacm-utils ibverbs-providers librdmacm1 infiniband-diags
  gcc libc6-dev libibverbs-dev                       # for test/interop/peer; and go test -race wants cgo
  tshark tcpdump iperf3 netcat-openbsd iputils-ping procps
  iptables                                           # legacy tables and rules in nftables that are read
  nftables                                           # breaks the networks that verbena probe is tried on
  ethtool                                            # says what diag/source/ethtool reads
  chromium fonts-dejavu-core                         # opens the page of verbena monitor
  qemu-user                                          # runs the arm64 build of test/interop/digest
)

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done

# A kernel is complete when the stamp is there: it is written last.
have_kernel() { compgen -G "$1/*/.complete" >/dev/null; }

# Only one install at a time; the others wait and then find everything in place.
if [ ${#missing[@]} -gt 0 ] || ! have_kernel "$kernels" || ! have_kernel "$backports"; then
  mkdir -p "$kernels" "$backports"
  exec 9>"$cache/judges.lock"
  flock -w 1200 9 || { say "another install has held $cache/judges.lock for 20 minutes"; exit 1; }
  missing=()
  for p in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
fi

fail() {
  say "$*"
  [ "${VERBENA_JUDGES:-}" = require ] && exit 1
  exit 0
}

apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 "$@"
}

# Other sources on the machine may be unreachable; what matters is whether the packages are found.
updated=
update() {
  [ -z "$updated" ] || return 0
  apt update >/dev/null 2>&1 || say "apt-get update reported errors, going on with the lists there are"
  updated=1
}

if [ ${#missing[@]} -gt 0 ]; then
  say "installing ${missing[*]}"
  update
  log=$(mktemp)
  if ! apt install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
    tail -n 30 "$log"
    rm -f "$log"
    fail "apt-get install failed: ${missing[*]}"
  fi
  rm -f "$log"
fi

# unpack DIR APT-OPTION…: downloads the kernel that linux-image-amd64 stands for and unpacks it into DIR.
unpack() {
  local dir=$1 image release tmp
  shift
  # linux-image-amd64 is a pointer; the image is the one package that it depends on.
  image=$(apt-cache "$@" depends --important linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[^ <>]*\)$/\1/p' | head -n 1)
  [ -n "$image" ] || fail "apt knows no image that linux-image-amd64 depends on"
  say "unpacking $image into $dir"
  # apt's download user may write neither to /root nor to a private cache, so download elsewhere.
  tmp=$(mktemp -d)
  chmod 755 "$tmp"
  chown _apt "$tmp" 2>/dev/null || true
  (cd "$tmp" && apt "$@" download "$image" >download.log 2>&1) || { tail -n 20 "$tmp/download.log"; rm -rf "$tmp"; fail "apt-get download $image failed"; }
  release=${image#linux-image-}
  rm -rf "${dir:?}/$release" "$dir/.new"
  mkdir "$dir/.new"
  dpkg-deb -x "$tmp"/*.deb "$dir/.new"
  depmod -b "$dir/.new" "$release"
  dpkg-deb -f "$tmp"/*.deb Package Version >"$dir/.new/.complete"
  mv "$dir/.new" "$dir/$release"
  rm -rf "$tmp"
}

if ! have_kernel "$kernels"; then
  update
  unpack "$kernels"
fi

# The suite is asked for this one download with lists of its own: nothing else on the machine sees it.
if ! have_kernel "$backports"; then
  # shellcheck disable=SC1091
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $codename" "Created-By: Packages" 2>/dev/null | head -n 1)
  [ -n "$mirror" ] || fail "apt has no source of $codename to take $codename-backports from"
  lists=$(mktemp -d)
  trap 'rm -rf "$lists"' EXIT
  chmod 755 "$lists"
  mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $codename-backports main" >"$lists/sources"
  alone=(-o "Dir::Etc::SourceList=$lists/sources" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$lists/lists" -o "Dir::Cache=$lists/cache")
  apt "${alone[@]}" update >"$lists/log" 2>&1 || { tail -n 5 "$lists/log"; fail "apt-get update of $codename-backports failed"; }
  unpack "$backports" "${alone[@]}"
fi

newest() { basename "$(dirname "$(compgen -G "$1/*/.complete" | sort -V | tail -n 1)")"; }
say "ready: ${#packages[@]} packages, guest kernels $(newest "$kernels") and $(newest "$backports")"
