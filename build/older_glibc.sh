#!/bin/sh
# dist/older/sigwrap: the one file for systems with an older glibc than this one. make binary-older
#
# Needs root, debootstrap, and the packages of Debian. Debian's oldest release that is still served
# has no Python that sigwrap runs with, so a newer one's source, with its security fixes, is compiled
# there; so is the OpenSSL that newer systems have, for Python to be linked to: the file carries none.
# These take ten minutes on two cores, and are kept in the root folder for the next time.
set -eu

release=bullseye
sources=bookworm
checkout=$(cd "$(dirname "$0")/.." && pwd)
root=${XDG_CACHE_HOME:-$HOME/.cache}/sigwrap-roots/build-$release

if [ "${1:-}" != here ]; then
    exec unshare --mount --propagation private sh "$0" here
fi

if [ ! -e "$root/usr" ]; then
    rm -rf "$root.unfinished"
    mkdir -p "$(dirname "$root")"
    debootstrap --variant=minbase "$release" "$root.unfinished"
    mv "$root.unfinished" "$root"
fi
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
cp /etc/resolv.conf "$root/etc/"
if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
    mkdir -p "$root/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
fi
mkdir -p "$root/src"
find "$root/src" -mindepth 1 -maxdepth 1 ! -name .venv -exec rm -rf {} +
(cd "$checkout" && git ls-files -z | tar -c --null -T -) | tar -x -C "$root/src"

chroot "$root" sh -eu -s "$sources" <<'IN_THE_ROOT'
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
sources=$1

source_of() {
    sed "s/^deb /deb-src /; s/ [^ ]* main.*/ $sources main/; q" /etc/apt/sources.list \
        >/etc/apt/sources.list.d/sources.list
    apt-get -qq update
    rm -rf "/build/$1"
    mkdir -p "/build/$1"
    cd /build
    apt-get -qq -o APT::Sandbox::User= source --download-only "$1"
    tar -x -f "$1"_*.orig.tar.* -C "$1" --strip-components=1
    tar -x -f "$1"_*.debian.tar.* -C "$1"
    cd "$1"
}

if [ ! -e /usr/local/.packages ]; then
    apt-get -qq update
    apt-get -qq install -y --no-install-recommends gcc make binutils perl patch xz-utils \
        libsqlite3-dev libffi-dev zlib1g-dev libexpat1-dev
    touch /usr/local/.packages
fi

if [ ! -e /usr/local/.openssl ]; then
    source_of openssl
    ./Configure linux-x86_64 shared no-tests --prefix=/usr/local --libdir=lib >configure.log
    make -s -j2 build_libs >make.log 2>&1
    make -s install_dev >install.log 2>&1
    ldconfig
    touch /usr/local/.openssl
fi

if [ ! -e /usr/local/.python ]; then
    source_of python3.11
    # What mends Python, not what makes it Debian's own.
    for fix in $(grep -E '^(CVE-|000|setup-modules|shutdown-|frame_dealloc-|relfile-)' \
        debian/patches/series); do
        patch -s -p1 <"debian/patches/$fix"
    done
    ./configure -q --enable-shared --with-openssl=/usr/local --disable-test-modules >configure.log
    # In one library, as Debian has them: each file is one more to unpack at a start.
    for module in _bisect _blake2 _contextvars _datetime _heapq _json _md5 _opcode _posixsubprocess \
        _random _sha1 _sha256 _sha3 _sha512 _socket _struct _typing array binascii fcntl grp math \
        mmap resource select termios zlib; do
        sed -n "s/^#\($module \)/\1/p" Modules/Setup
    done >Modules/Setup.local
    # One of the fixes uses what is the interpreter's own.
    printf '*shared*\npyexpat pyexpat.c -DPy_BUILD_CORE_MODULE -lexpat\n' >>Modules/Setup.local
    make -s -j2 >make.log 2>&1
    make -s install >install.log 2>&1
    ldconfig
    touch /usr/local/.python
fi

cd /src
make binary PYTHON=/usr/local/bin/python3.11
IN_THE_ROOT

mkdir -p "$checkout/dist/older"
cp "$root/src/dist/sigwrap" "$checkout/dist/older/sigwrap"
ln -sf sigwrap "$checkout/dist/older/sigwrap-forward"
ln -sf sigwrap "$checkout/dist/older/sigwrap-stub"
