#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs headers, libraries, the trn program and a pkg-config file.
#
# Usage: AT= PREFIX= LIBDIR= VERSION= SONAME= PRIVATE= install.sh <build folder>
# AT is put before every path, for packagers; the files do not mention it.
set -eu
b=$1
lib=$AT$LIBDIR
install -d "$AT$PREFIX/include/trn" "$lib/pkgconfig" "$AT$PREFIX/bin"
install -m 644 include/trn.h "$AT$PREFIX/include/"
install -m 644 include/trn/*.h include/trn/*.def "$AT$PREFIX/include/trn/"
install -m 644 "$b/libtrn.a" "$lib/"
install -m 755 "$b/$SONAME" "$lib/libtrn.so.$VERSION"
ln -sfn "libtrn.so.$VERSION" "$lib/$SONAME"
ln -sfn "$SONAME" "$lib/libtrn.so"
install -m 755 "$b/trn" "$AT$PREFIX/bin/"
cat >"$lib/pkgconfig/libtrn.pc" <<END
prefix=$PREFIX
libdir=$LIBDIR
includedir=\${prefix}/include

Name: libtrn
Description: Embeddable numerical training library with reproducible bits
Version: $VERSION
Cflags: -I\${includedir}
Libs: -L\${libdir} -ltrn
Libs.private: $PRIVATE
END
