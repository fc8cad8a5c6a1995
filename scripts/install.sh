#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs headers, libraries, the trn program with its manual page, and what
# pkg-config and CMake look for.
#
# Usage: AT= PREFIX= LIBDIR= MANDIR= VERSION= SONAME= PRIVATE= install.sh <build folder>
# AT is put before every path, for packagers; the files do not mention it.
set -eu
b=$1
lib=$AT$LIBDIR
cmake=$lib/cmake/libtrn
install -d "$AT$PREFIX/include/trn" "$lib/pkgconfig" "$cmake" \
    "$AT$PREFIX/bin" "$AT$MANDIR/man1"
install -m 644 include/trn.h "$AT$PREFIX/include/"
install -m 644 include/trn/*.h include/trn/*.def "$AT$PREFIX/include/trn/"
install -m 644 "$b/libtrn.a" "$lib/"
install -m 755 "$b/$SONAME" "$lib/libtrn.so.$VERSION"
ln -sfn "libtrn.so.$VERSION" "$lib/$SONAME"
ln -sfn "$SONAME" "$lib/libtrn.so"
install -m 755 "$b/trn" "$AT$PREFIX/bin/"
sed "s/@VERSION@/$VERSION/" tools/trn.1 >"$AT$MANDIR/man1/trn.1"

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

# CMake finds everything from the folder of its file, so a tree may be moved.
up=$(realpath -m --relative-to="$LIBDIR/cmake/libtrn" "$PREFIX/include")
flags=$(echo "$PRIVATE" | sed 's/^ *//; s/ *$//; s/  */;/g')
cat >"$cmake/libtrnConfig.cmake" <<END
# find_package(libtrn $VERSION CONFIG) gives libtrn::trn and libtrn::trn_static.
get_filename_component(_trn_lib "\${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(_trn_include "\${CMAKE_CURRENT_LIST_DIR}/$up" ABSOLUTE)
if(NOT TARGET libtrn::trn)
  add_library(libtrn::trn SHARED IMPORTED)
  set_target_properties(libtrn::trn PROPERTIES
    IMPORTED_LOCATION "\${_trn_lib}/libtrn.so.$VERSION"
    IMPORTED_SONAME "$SONAME"
    INTERFACE_INCLUDE_DIRECTORIES "\${_trn_include}")
  add_library(libtrn::trn_static STATIC IMPORTED)
  set_target_properties(libtrn::trn_static PROPERTIES
    IMPORTED_LOCATION "\${_trn_lib}/libtrn.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES "C"
    INTERFACE_LINK_LIBRARIES "$flags"
    INTERFACE_INCLUDE_DIRECTORIES "\${_trn_include}")
endif()
unset(_trn_lib)
unset(_trn_include)
END
# Before 1.0 another minor version may be another interface.
cat >"$cmake/libtrnConfigVersion.cmake" <<END
set(PACKAGE_VERSION "$VERSION")
set(_trn_series "${VERSION%.*}")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
elseif("\${PACKAGE_FIND_VERSION_MAJOR}.\${PACKAGE_FIND_VERSION_MINOR}"
       STREQUAL _trn_series)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
else()
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
if(PACKAGE_FIND_VERSION STREQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
unset(_trn_series)
END
